"""The studio as an application: its pages, what they ask, and the events of what they started."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ppspeech import __version__
from ppspeech.errors import PpspeechError
from ppspeech.network import Address, WebFile
from ppspeech.service.page import page_files
from ppspeech.studio import work
from ppspeech.studio.choices import Places
from ppspeech.studio.guard import Guard
from ppspeech.studio.jobs import Job, Jobs
from ppspeech.studio.models import described
from ppspeech.studio.runs import release_name, runs

PAGES = {"speak": "Speak", "models": "Models", "train": "Train", "filters": "Filters", "together": "Together"}
FOLDER = Path(__file__).parent / "pages"
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
DOOR = re.compile(r"a browser asks at http://(127\.0\.0\.1:[0-9]{1,5})/")
"""Of a line by itself, and on this machine: names of bundles are printed too."""


class Studio:
    """Pages for one person: behind a guard, with all that was started for them.

    `address`: where it listens, on loopback. `token`: what the address that is printed shows. `places`: all that pages
    may choose from.
    """

    def __init__(self, address: Address, token: str, places: Places) -> None:
        self.address, self.token, self.places = address, token, places
        self.jobs = Jobs()
        self._files = _files()
        app = Starlette(routes=self._routes(), lifespan=self._living)
        public = {"/", *(f"/{name}" for name in PAGES), *self._files}
        self.guard = Guard(app, address=address, token=token, public=public, sockets=self._sockets)

    @property
    def entrance(self) -> str:
        """The address to open: its page takes the token out of it, and keeps it while its tab is open."""
        return f"http://{self.address}/speak#token={self.token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; see `ASGIApp`."""
        await self.guard(scope, receive, send)

    @contextlib.asynccontextmanager
    async def _living(self, app: Starlette) -> AsyncIterator[None]:  # noqa: ARG002
        watching = asyncio.get_running_loop().create_task(self.jobs.end_forgotten())
        try:
            yield
        finally:
            watching.cancel()
            await self.jobs.end()

    def _routes(self) -> list[Route]:
        pages = [Route(f"/{name}", self._page(name)) for name in PAGES]
        files = [Route(path, self._file(path)) for path in self._files]
        return [
            Route("/", self._page("speak")),
            *pages,
            *files,
            Route("/api/models", self._models),
            Route("/api/choices", self._choices),
            Route("/api/speak", self._speak, methods=["GET", "POST"]),
            Route("/api/start/{kind}", self._start, methods=["POST"]),
            Route("/api/runs/{kind}", self._runs),
            Route("/api/jobs", self._listed),
            Route("/api/jobs/{name}/stop", self._stop, methods=["POST"]),
            Route("/api/jobs/{name}/events", self._events),
        ]

    def _sockets(self) -> tuple[str, ...]:
        """WebSockets that pages may open: those of the server that runs for Speak."""
        job = self.jobs.running("speak")
        door = None if job is None else _door(job)
        return () if door is None else (f"ws://{door}/ws",)

    def _page(self, name: str) -> Callable[[Request], Any]:
        html = _framed(name)

        async def page(_: Request) -> Response:
            return HTMLResponse(html)

        return page

    def _file(self, path: str) -> Callable[[Request], Any]:
        file = self._files[path]

        async def answer(_: Request) -> Response:
            return Response(file.body, media_type=file.media_type)

        return answer

    async def _models(self, _: Request) -> Response:
        found = self.places.bundles()
        return JSONResponse([await to_thread.run_sync(described, name, path) for name, path in found.items()])

    async def _choices(self, _: Request) -> Response:
        recordings = await to_thread.run_sync(self.places.recordings)
        return JSONResponse(
            {
                "version": __version__,
                "recipes": {name: f"{each.summary} Takes {each.takes}" for name, each in work.trainable().items()},
                "filters": {name: f"{each.summary} Takes {each.takes}" for name, each in work.filterable().items()},
                "corpora": list(recordings),
                "units": list(work.UNITS),
                "protocols": work.PROTOCOLS,
                "tables": list(self.places.tables),
            }
        )

    async def _speak(self, request: Request) -> Response:
        """Start the server of a bundle, or say which one runs and where its WebSocket is."""
        if request.method == "POST":
            running = self.jobs.running("speak")
            if running is not None:
                await running.stop()
                running.state = "stopped"
            origins = tuple(f"http://{host}" for host in sorted(self.guard.hosts))
            return await self._started(lambda asked: work.serve(self.jobs, self.places, asked, origins), request)
        job = self.jobs.latest("speak")
        if job is None:
            return JSONResponse({"job": None, "door": None})
        return JSONResponse({"job": job.plain(), "door": _door(job) if job.state == "running" else None})

    async def _start(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in work.START:
            return JSONResponse({"error": f"there is nothing to start by {kind!r:.40}"}, 404)
        return await self._started(lambda asked: work.START[kind](self.jobs, self.places, asked), request)

    async def _started(self, start: Callable[[Any], Job], request: Request) -> Response:
        try:
            return JSONResponse(start(_json(await request.body())).plain())
        except PpspeechError as refused:
            return JSONResponse({"error": str(refused)}, 400)

    async def _runs(self, request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in {"train", "filter", "together"}:
            return JSONResponse({"error": "there are runs of train, filter and together"}, 404)
        found = await to_thread.run_sync(runs, self.places.work, kind)
        if kind == "train":
            names = [(run, release_name(run["run"], run)) for run in found]
            found = [run | {"released": name if (self.places.made / name).is_dir() else None} for run, name in names]
        return JSONResponse(found)

    async def _listed(self, _: Request) -> Response:
        found = [self.jobs.latest(kind) for kind in ("speak", *work.START)]
        return JSONResponse([job.plain() for job in found if job is not None])

    async def _stop(self, request: Request) -> Response:
        try:
            job = self.jobs.named(request.path_params["name"])
        except PpspeechError as unknown:
            return JSONResponse({"error": str(unknown)}, 404)
        if job.state == "running":
            await job.stop()
        return JSONResponse(job.plain())

    async def _events(self, request: Request) -> Response:
        try:
            job = self.jobs.named(request.path_params["name"])
        except PpspeechError as unknown:
            return JSONResponse({"error": str(unknown)}, 404)
        return StreamingResponse(self._told(job), media_type="text/event-stream")

    async def _told(self, job: Job) -> AsyncIterator[str]:
        """What happens to a job, as server-sent events: lines, states, and messages between parties."""
        place = 0
        async with contextlib.aclosing(job.watch()) as watching:
            async for event in watching:
                while True:
                    messages, place = work.messages_since(job.folder, place)
                    if messages:
                        yield _event({"messages": messages})
                    else:
                        break
                yield _event(event)


def _event(plain: Any) -> str:
    return f"data: {json.dumps(plain)}\n\n"


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise PpspeechError("what was asked is not JSON") from None


def _door(job: Job) -> str | None:
    """Where the WebSocket of a server is, as it printed it."""
    return next((found[1] for line in job.first if (found := DOOR.fullmatch(line.strip()))), None)


def _framed(name: str) -> str:
    """A page in the frame that all of them share."""
    frame, main = (FOLDER / "frame.html").read_text("utf-8"), (FOLDER / f"{name}.html").read_text("utf-8")
    current = ' aria-current="page"'
    links = "\n".join(
        f'          <li><a href="/{each}"{current if each == name else ""}>{title}</a></li>'
        for each, title in PAGES.items()
    )
    filled = frame.replace("{links}", links).replace("{title}", PAGES[name]).replace("{name}", name)
    return filled.replace("{version}", __version__).replace("{main}", main)


def _files() -> dict[str, WebFile]:
    """The client and what draws and records, as a server's own page has them; and the studio's own."""
    shared = {path: file for path, file in page_files(None).items() if path not in {"/", "/index.html", "/server.json"}}
    own = {
        f"/studio/{path.name}": WebFile(path.read_bytes(), TYPES[path.suffix])
        for path in sorted(FOLDER.iterdir())
        if path.suffix in TYPES
    }
    return shared | own
