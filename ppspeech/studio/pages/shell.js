// What all pages share: asking the studio, saying what went wrong, elements, and watching what was started.

export const $ = (id) => document.getElementById(id);

const TOKEN = "ppspeech studio";

/** The token of the address that was opened: out of it, and kept for this tab and this port, which a cookie is not. */
function token() {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (found) {
    sessionStorage.setItem(TOKEN, found[1]);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(TOKEN) ?? "";
}

const shown = { authorization: `Bearer ${token()}` };

// An address with a token that is opened where a page of the studio is open already loads nothing by itself.
addEventListener("hashchange", () => location.hash.startsWith("#token=") && (token(), location.reload()));

/** Ask the studio: GET, or POST with a body. What it refuses is an Error in its words. */
export async function ask(path, body) {
  const post = { method: "POST", headers: { ...shown, "content-type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, body === undefined ? { headers: shown } : post);
  } catch {
    throw new Error("The studio is not there any more. Start it again, and open the address that it prints.");
  }
  const plain = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(plain.error ?? `The studio answered ${answer.status}.`);
  return plain;
}

/** What happens to a job, one event after the other, until it or the studio ends: an EventSource shows no token. */
async function* events(name) {
  const answer = await fetch(`/api/jobs/${encodeURIComponent(name)}/events`, { headers: shown }).catch(() => null);
  if (!answer?.ok) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let heard = ""; ; ) {
      const { done, value } = await reader.read().catch(() => ({ done: true }));
      if (done) return;
      const told = (heard + value).split("\n\n");
      heard = told.pop();
      for (const each of told) if (each.startsWith("data: ")) yield JSON.parse(each.slice(6));
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

export function complain(error) {
  $("error").textContent = error.message ?? String(error);
  $("error").hidden = false;
}

export function forgive() {
  $("error").hidden = true;
}

/** Run something that may fail, and say so. */
export const guarded = (work) => async (...given) => {
  forgive();
  try {
    return await work(...given);
  } catch (error) {
    complain(error);
  }
};

/** An element with text or children; text is never read as markup. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export function options(select, names, chosen, label = (name) => name) {
  select.replaceChildren(...names.map((name) => new Option(label(name), name, name === chosen, name === chosen)));
}

export function row(...cells) {
  return make("tr", {}, ...cells.map((cell, at) => make("td", at > 0 && typeof cell === "number" ? { class: "number" } : {}, typeof cell === "number" ? cell.toLocaleString("en") : cell)));
}

/** A row that says that there is nothing yet. */
export const none = (columns, words = "none yet") => make("tr", {}, make("td", { colspan: columns, class: "soft" }, words));

/** Watch a job until it ends; it goes on while somebody watches. Tells of lines and messages; resolves to its state. */
export async function watch(name, { lines = () => {}, messages = () => {} } = {}) {
  let seen = false;
  for await (const event of events(name)) {
    seen = true;
    if (event.messages) {
      messages(event.messages);
      continue;
    }
    if (event.lines.length) lines(event.lines);
    if (event.state !== "running") return event.state;
  }
  return seen ? "lost" : "gone";
}

/** A form whose job is watched: its buttons, its log, and what it says in the end. */
export function running({ kind, asked, lines = () => {}, messages, title, ended }) {
  const [form, start, stop, status, log, job] = ["form", "start", "stop", "status", "log", "job"].map($);
  let name = null;

  async function follow(found) {
    name = found.name;
    start.disabled = true;
    stop.hidden = false;
    if (job) job.hidden = false;
    $("progress")?.removeAttribute("value");
    if (log) log.textContent = "";
    status.textContent = `${title(found.about)} …`;
    const told = [];
    const state = await watch(name, {
      messages,
      lines: (fresh) => {
        told.push(...fresh);
        if (log) {
          log.append(fresh.filter((line) => line.trim()).map((line) => `${line}\n`).join(""));
          log.scrollTop = log.scrollHeight;
        }
        lines(fresh);
      },
    });
    start.disabled = false;
    stop.hidden = true;
    if ($("progress")) $("progress").value = state === "done" ? 1 : 0;
    const why = told.findLast((line) => /^(error|violated):/.test(line));
    status.textContent = { done: "Done.", stopped: "Stopped." }[state] ?? "It failed.";
    if (state === "failed") complain(new Error(why ?? told.findLast((line) => line.trim()) ?? "The command failed without a word."));
    if (state === "lost" || state === "gone") complain(new Error("The studio is not there any more."));
    await ended(state, told, found);
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void guarded(async () => follow(await ask(`/api/start/${kind}`, asked())))();
  });
  stop.addEventListener("click", guarded(async () => {
    status.textContent = "Stopping …";
    await ask(`/api/jobs/${name}/stop`, {});
  }));
  return async () => {
    const found = (await ask("/api/jobs")).find((each) => each.kind === kind && each.state === "running");
    if (found) void guarded(() => follow(found))();
  };
}
