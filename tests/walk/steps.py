"""What a new user does, in order: commands that documents show, own recordings, own tables, the library, and misuse.

A stage begins in an empty folder that sees `configs`. A step is a command line or Python; it must end with `code`, and
what it prints must match `says`, whose named groups later steps use as {name}.
"""

from tests.walk.shown import python_blocks
from tests.walk.step import Step, python

QUICK = "--trainer.logger false --trainer.enable_progress_bar false --trainer.default_root_dir run --expect {}"
CHECKPOINT = r"\s(?P<checkpoint>\S+\.ckpt)"
SERVED = r"--server (?P<address>127\.0\.0\.1:\d+) --pin (?P<pin>[0-9a-f]{64})"

MEASURED = """
import json
from pathlib import Path
Path("docs/results").mkdir(parents=True)
row = "{metric: fsdd.hmm.accuracy, what: words right, form: percent}"
Path("docs/results/shown.yaml").write_text(
    "groups: [{title: Words, commands: [{command: ppspeech reproduce fsdd, about: digits, rows: [" + row + "]}]}]"
)
Path("README.md").write_text("<!-- figure: fsdd.hmm.accuracy percent -->?<!-- end --> of the words are right")
first = {"command": "ppspeech reproduce fsdd", "date": "2026-11-18", "seconds": 9}
figure = {"metric": "fsdd.hmm.accuracy", "value": 0.5, "unit": ""}
Path("raw.jsonl").write_text(json.dumps(first) + "\\n" + json.dumps(figure) + "\\n")
"""

LOOK = [
    Step("help", "ppspeech --help", "(?s)recognize.*simulate"),
    Step("version", "ppspeech --version", r"ppspeech \d"),
    Step("what is installed", "ppspeech info", "torch"),
    Step("licenses", "ppspeech info --licenses", "fits Apache-2.0"),
    Step("what is installed, for programs", "ppspeech info --json", r"^\{"),
    Step("corpora and tables", "ppspeech corpus list", "(?s)fsdd.*adult"),
    Step("protocols", "ppspeech party", "(?s)millionaires.*train_descent"),
    Step("protocols, for programs", "ppspeech party --json", r'"name": "millionaires"'),
    Step("one of them", "ppspeech party beliefs", "(?s)two servers|server brings.*person brings"),
    Step("another", "ppspeech party beliefs_peers", "computes:"),
    Step("and another", "ppspeech party personal_filters", "aggregator brings: weight, bias"),
    Step("a file to start it from", "ppspeech party beliefs --example", "role: person"),
    Step("benches", "ppspeech bench", "(?s)features.*keyword"),
    Step("experiments", "ppspeech reproduce", "(?s)fsdd.*speakers"),
    Step("recipes", "ppspeech train", "keyword_hmm"),
    Step("mechanisms, attacked", "ppspeech audit --all --quick", "gaussian", slow=True),
    Step("a printed one that does not hold", "ppspeech audit published_output_laplace", "violated", 1, told=True),
    Step("another", "ppspeech audit published_wishart", "violated", 1, told=True),
    Step("a bench", "ppspeech bench features --quick --json", "features.batch_ms|features", slow=True),
    Step(
        "an experiment, and it is kept",
        "ppspeech reproduce yesno --quick --store --results kept",
        "yesno",
        makes=("kept/reproduce-yesno-quick.jsonl",),
        slow=True,
        needs="yesno",
    ),
    python("what somebody has measured", MEASURED),
    Step("keep it", "ppspeech report add raw.jsonl", "reproduce-fsdd.jsonl"),
    Step("which figures there are", "ppspeech report --metrics", "fsdd.hmm.accuracy"),
    Step("a document is not what they say", "ppspeech report --check", r"quoted as '\?', the store has '50\.0 %'", 1),
    Step("write page and document", "ppspeech report", "(?s)wrote docs/results/index.md.*wrote README.md"),
    Step("now it is", "ppspeech report --check", "and 1 documents say what 1 results give"),
    Step("a known corpus", "ppspeech corpus fsdd --plot fsdd.png", "3,000", makes=("fsdd.png",), needs="fsdd"),
]

DEMO = [
    Step(
        "what it does", "ppspeech demo", "(?s)without privacy.*with privacy", makes=("demo_output/bundle",), slow=True
    ),
    Step("look at what it leaves", "ppspeech inspect demo_output/bundle", "-DP for one utterance", slow=True),
]

ODD_FILES = """
import numpy as np, soundfile, shutil
from pathlib import Path
from ppspeech.audio import read_audio, Resample
import torch
one = next(Path("mine").rglob("*.wav"))
sound, rate = soundfile.read(one, dtype="float32")
Path("odd").mkdir()
up = np.interp(np.arange(int(len(sound) * 44100 / rate)) * rate / 44100, np.arange(len(sound)), sound)
soundfile.write("odd/stereo 44.wav", np.stack([up, up], 1), 44100)
soundfile.write("odd/ünï.flac", sound, rate)
soundfile.write("odd/float.wav", sound, rate, subtype="FLOAT")
soundfile.write("odd/24.wav", sound, rate, subtype="PCM_24")
soundfile.write("odd/six.wav", np.stack([sound] * 6, 1), rate)
soundfile.write("odd/ogg.ogg", sound, rate)
soundfile.write("odd/[red]x[bold]:smile:.wav", sound, rate)
soundfile.write("silent.wav", np.zeros(16000), 16000)
soundfile.write("short.wav", sound[:80], rate)
soundfile.write("nothing.wav", np.zeros(0), 16000)
Path("text.wav").write_text("not a sound")
holes = sound.copy(); holes[100] = np.nan
soundfile.write("holes.wav", holes, rate, subtype="FLOAT")
shutil.copy(one, "clip.wav")
print("written")
"""

OWN = [
    Step(
        "a corpus of the built-in voices",
        'ppspeech synth mine --words "go,stop,left,right" --speakers 6 --takes 2',
        "48 recordings by 6 voices",
    ),
    Step("it is checked", "ppspeech corpus mine --plot mine.png", "48 utterances by 6 speakers", makes=("mine.png",)),
    Step("for programs", "ppspeech corpus mine --json", r'"metric": "corpus\.'),
    python("recordings as people have them", ODD_FILES.replace(", Resample", ""), "written"),
    Step(
        "features of one clip",
        "ppspeech features clip.wav --out hello.npz --picture hello.png",
        "clip.wav",
        makes=("hello.npz", "hello.png"),
    ),
    Step(
        "features of a corpus, on all cores",
        "ppspeech features mine --out arrays --ray",
        "48 recordings",
        makes=("arrays/manifest.csv", "arrays/samples/000047.npy"),
    ),
    Step(
        "features of odd files",
        "ppspeech features 'odd/stereo 44.wav' odd/ünï.flac odd/float.wav odd/24.wav odd/six.wav odd/ogg.ogg "
        "'odd/[red]x[bold]:smile:.wav' --out odd.npz",
        r"(?s)stereo 44\.wav.*\[red\]x\[bold\]:smile:",
        makes=("odd.npz",),
    ),
    *[
        Step(f"refused: {name}", f"ppspeech features {name}.wav --out no.npz", f"error:.*{name}.wav", code=2)
        for name in ("silent", "short", "nothing", "text", "holes", "absent")
    ],
    python(
        "a folder without a manifest, a faulty one",
        """
        import shutil
        from pathlib import Path
        shutil.copytree("mine", "bare"); (Path("bare") / "manifest.csv").unlink()
        [each.unlink() for each in Path("bare").glob("synthetic.json")]
        Path("faulty").mkdir()
        for name in ("silent.wav", "short.wav", "nothing.wav", "holes.wav"):
            shutil.copy(name, f"faulty/{name}")
        shutil.copy("clip.wav", "faulty/good.wav")
        rows = "".join(f"{name},ann,go,0\\n" for name in sorted(each.name for each in Path("faulty").iterdir()))
        Path("faulty/manifest.csv").write_text("path,speaker,word,take\\n" + rows)
        """,
    ),
    Step("every fault of a corpus at once", "ppspeech corpus faulty", r"(?s)holes\.wav.*silent\.wav", 1),
]

MEETINGS = """
import numpy as np, soundfile
from pathlib import Path
from ppspeech.data import load_corpus
corpus = load_corpus("mine")
said = {(each.speaker, each.word, each.take): each.path for each in corpus}
def say(path, speaker, take, words):
    sounds = [soundfile.read(said[speaker, word, take]) for word in words.split()]
    soundfile.write(path, np.concatenate([sound for sound, _ in sounds]), sounds[0][1])
Path("meetings").mkdir()
ann, bob, carol = corpus.speakers[:3]
say("meetings/monday.wav", ann, 0, "go stop left")
say("meetings/tuesday.wav", bob, 0, "left go go")
say("call.wav", carol, 0, "left stop go")
say("take.wav", ann, 1, "stop left")
Path("takes").mkdir(), Path("talks").mkdir()
for number, speaker in enumerate(corpus.speakers):
    say(f"takes/{number}.wav", speaker, 1, "stop")
    say(f"talks/{number}.wav", speaker, 1, "go left left go " * 5)
print("written")
"""

WORDS = [
    # Other takes than those that private training starts from.
    Step("a corpus", 'ppspeech synth mine --words "go,stop,left" --speakers 8 --takes 2 --seed 1', "48 recordings"),
    Step(
        "train word models on one's own folder",
        f"ppspeech train keyword_hmm --data.corpus mine {QUICK}",
        rf"(?s)test_accuracy.*{CHECKPOINT}",
    ),
    Step("packed features", "ppspeech pack mine --out packed", "utterances", makes=("packed/packed.json",)),
    Step("training on them", f"ppspeech train keyword_hmm --data.corpus packed {QUICK}", "test_accuracy"),
    Step(
        "training in two processes",
        f"ppspeech train keyword_hmm --data.corpus packed --trainer.devices 2 --trainer.strategy ddp {QUICK}",
        "test_accuracy",
        slow=True,
    ),
    Step("a checkpoint without a guarantee stays here", "ppspeech export {checkpoint} --out words", "--not-private", 2),
    Step("unless one says so", "ppspeech export {checkpoint} --out words --not-private", "words: keyword_hmm"),
    Step("look at it", "ppspeech inspect words", "keyword_hmm"),
    Step("for programs", "ppspeech inspect words --json", r'^\{"config"'),
    Step("what it gives away, as rates", "ppspeech inspect words --trade-off", "false negatives at least"),
    Step(
        "messages between parties",
        "ppspeech simulate train_average --parties 4 --table breast_cancer --messages messages.jsonl",
        "",
        makes=("messages.jsonl",),
        slow=True,
    ),
    Step("a key to sign with", "ppspeech keys signing my_keys", "keep it to yourself", makes=("my_keys/signing.pub",)),
    Step("vouch for it", "ppspeech sign words --key my_keys/signing.pem", "is signed"),
    Step("and enter it", "ppspeech ledger add releases.jsonl words --data mine --by me", "nothing bounds"),
    Step(
        "who vouches for it",
        "ppspeech verify-release words --key my_keys/signing.pub --ledger releases.jsonl",
        "(?s)as it was signed.*does not prove",
    ),
    Step("what was released", "ppspeech ledger show releases.jsonl", r"head (?P<head>1:\w{64})"),
    Step("nothing is cut off", "ppspeech ledger verify releases.jsonl words --head {head}", "the chain holds"),
    Step("vouch for all of them", "ppspeech ledger sign releases.jsonl --key my_keys/signing.pem", "signed: head 1:"),
    Step(
        "who vouches for them",
        "ppspeech ledger verify releases.jsonl words --key my_keys/signing.pub",
        "goes through the head that is signed",
    ),
    Step("write it anew", "ppspeech export words --out anew", "anew: keyword_hmm"),
    python(
        "clips",
        """
        import shutil
        from pathlib import Path
        clips = sorted(Path("mine").rglob("*stop*.wav")) or [p for p in sorted(Path("mine").rglob("*.wav"))]
        shutil.copy(clips[2], "clip.wav")
        print(clips[2].name)
        """,
    ),
    Step("recognize", "ppspeech recognize words clip.wav", "stop"),
    Step(
        "a clip that is not there does not stop the others",
        "ppspeech recognize words clip.wav absent.wav",
        "(?s)stop.*absent",
        code=1,
    ),
    Step("write down", "ppspeech transcribe words clip.wav", "stop"),
    Step("what encryption would cost", "ppspeech encrypt-plan words --frames 150", "words"),
    Step("no guarantee, nothing to attack", "ppspeech audit words", "no guarantee", 2),
    Step(
        "serve it",
        "ppspeech serve words --listen 127.0.0.1:0",
        r"recognize (?P<address>127\.0\.0\.1:\d+) clip\.wav --pin (?P<pin>[0-9a-f]{64})",
        goes_on=True,
    ),
    Step("recognize without showing the voice", "ppspeech recognize {address} clip.wav --pin {pin}", "stop"),
    Step(
        "what the server got",
        "ppspeech recognize {address} clip.wav --pin {pin} --show-transcript",
        "(?s)stop.*up, .* down, .* round trips",
    ),
    Step("for a probe of it", "ppspeech recognize {address} clip.wav --pin {pin} --json", '"word": "stop"'),
    Step("with a wrong pin", "ppspeech recognize {address} clip.wav --pin " + "ab" * 32, "not the pinned one", 2),
    Step("without a pin", "ppspeech recognize {address} clip.wav", "pin", 2),
    Step("attack it", "ppspeech attack words --quick --only chosen_key", "failed|stated", slow=True),
    Step(
        "attack the server that runs",
        "ppspeech attack {address} --pin {pin} --bundle words --quick --only chosen_key",
        "failed|stated",
        slow=True,
    ),
    Step(
        "a certificate for a server",
        "ppspeech keys new server --name speech.example.org --name 127.0.0.1",
        r"fingerprint: (?P<pin>[0-9a-f]{64})",
    ),
    *[
        Step(f"one for {name}", f"ppspeech keys new {name}", "keep it to yourself", makes=(f"{name}/key.pem",))
        for name in ("ann", "bob")
    ],
    python(
        "whom it lets in",
        """
        from pathlib import Path
        known = [Path(name, "certificate.pem").read_text() for name in ("ann", "bob")]
        Path("clients.pem").write_text("".join(known))
        """,
    ),
    Step(
        "serve it to them",
        "ppspeech serve words --listen 127.0.0.1:0 --certificate server/certificate.pem --key server/key.pem "
        "--client-ca clients.pem --state served --budget 1000 --frames 150 --metrics metrics.prom",
        r"recognize (?P<address>127\.0\.0\.1:\d+) clip\.wav",
        goes_on=True,
    ),
    Step("a stranger is refused", "ppspeech recognize {address} clip.wav --pin {pin}", "error", 2),
    Step(
        "ann is told",
        "ppspeech recognize {address} clip.wav --pin {pin} --certificate ann/certificate.pem --key ann/key.pem",
        "stop",
        makes=("metrics.prom",),
    ),
    Step(
        "let browsers in",
        "ppspeech serve words --listen 127.0.0.1:0 --web 127.0.0.1:0 --certificate server/certificate.pem "
        "--key server/key.pem --state served",
        r"a browser asks at (?P<page>https://127\.0\.0\.1:\d+/)",
        goes_on=True,
    ),
    python(
        "what a browser gets",
        """
        import ssl, urllib.request
        trust = ssl.create_default_context(cafile="server/certificate.pem")
        trust.verify_flags &= ~ssl.VERIFY_X509_STRICT
        page = urllib.request.urlopen("{page}", context=trust)
        print(page.headers["Content-Security-Policy"], page.read().decode())
        """,
        "(?s)default-src 'none'.*Say a word",
    ),
    Step(
        "let pages in that pin",
        "ppspeech serve words --listen 127.0.0.1:0 --webtransport 127.0.0.1:0 --web-origin https://pages.example "
        "--state served",
        r'connect\(\{ url: "https://127\.0\.0\.1:\d+/wt", pin: \["[0-9a-f]{64}", "[0-9a-f]{64}"\] \}\)',
        makes=("served/webtransport/pins.json",),
        goes_on=True,
    ),
    Step(
        "to listen while people speak",
        f"ppspeech train keyword_live --data.corpus mine {QUICK}",
        rf"(?s)test_accuracy.*{CHECKPOINT}",
        slow=True,
    ),
    Step("release that", "ppspeech export {checkpoint} --out live --not-private", "live: keyword_hmm", slow=True),
    python(
        "hear it live",
        """
        from ppspeech import connect, serve
        from ppspeech.audio import read_audio
        with serve("live") as server, connect(server.address, pin=server.pin) as client, client.stream() as listening:
            assert listening.is_live
            listening.feed(read_audio("clip.wav", 16_000))
            print(listening.finish().value)
        """,
        "stop",
        slow=True,
    ),
    Step(
        "a small network",
        f"ppspeech train keyword_network --data.corpus mine --trainer.max_epochs 60 {QUICK}",
        rf"(?s)test_accuracy.*{CHECKPOINT}",
        slow=True,
    ),
    Step("release it", "ppspeech export {checkpoint} --out net --not-private", "net: keyword_network", slow=True),
    Step(
        "serve it on shares",
        "ppspeech serve net --listen 127.0.0.1:0",
        r"recognize (?P<address>127\.0\.0\.1:\d+) clip\.wav --pin (?P<pin>[0-9a-f]{64})",
        goes_on=True,
        slow=True,
    ),
    Step("recognize by the network", "ppspeech recognize {address} clip.wav --pin {pin}", "go|stop|left", slow=True),
    Step(
        "train sentences",
        f"ppspeech train sentences --data.corpus mine {QUICK}",
        rf"(?s)test_accuracy.*{CHECKPOINT}",
    ),
    Step(
        "release them",
        "ppspeech export {checkpoint} --out sentences --not-private",
        "sentences: sentence_hmm",
    ),
    Step("write down a sentence", "ppspeech transcribe sentences clip.wav", "stop"),
    Step(
        "serve sentences",
        "ppspeech serve sentences --listen 127.0.0.1:0",
        r"transcribe (?P<address>127\.0\.0\.1:\d+) clip\.wav --pin (?P<pin>[0-9a-f]{64})",
        goes_on=True,
    ),
    Step(
        "write it down without showing the voice",
        "ppspeech transcribe {address} clip.wav --pin {pin}",
        "stop",
    ),
    Step(
        "by a grammar",
        f'ppspeech train sentences --data.corpus mine --model.grammar "(go | stop | left)+" {QUICK}',
        "test_accuracy",
        slow=True,
    ),
    Step(
        "by a network that says where words begin",
        f"ppspeech train sentences_ctc --data.corpus mine {QUICK}",
        rf"(?s)test_accuracy.*{CHECKPOINT}",
        slow=True,
    ),
    Step("release that", "ppspeech export {checkpoint} --out ctc --not-private", "ctc: ctc_network", slow=True),
    Step("what it would take", "ppspeech encrypt-plan ctc --frames 96", "layers of 39-64-64-64-4", slow=True),
    Step(
        "serve it on shares",
        "ppspeech serve ctc --listen 127.0.0.1:0",
        r"transcribe (?P<address>127\.0\.0\.1:\d+) clip\.wav --pin (?P<pin>[0-9a-f]{64})",
        goes_on=True,
        slow=True,
    ),
    Step("ask it", "ppspeech transcribe {address} clip.wav --pin {pin} --json", '"rounds"', slow=True),
    Step(
        "by a network that scores states",
        f"ppspeech train sentences_network --data.corpus mine {QUICK}",
        rf"(?s)test_accuracy.*{CHECKPOINT}",
        slow=True,
    ),
    Step("release it too", "ppspeech export {checkpoint} --out hybrid --not-private", "sentence_network", slow=True),
    Step("in the clear", "ppspeech transcribe hybrid clip.wav", "word", slow=True),
    Step(
        "serve network and graph",
        "ppspeech serve hybrid --listen 127.0.0.1:0",
        r"transcribe (?P<address>127\.0\.0\.1:\d+) clip\.wav --pin (?P<pin>[0-9a-f]{64})",
        goes_on=True,
        slow=True,
    ),
    Step("ask them", "ppspeech transcribe {address} clip.wav --pin {pin} --json", '"rounds"', slow=True),
    python(
        "a vocabulary",
        """
        from pathlib import Path
        Path("words.txt").write_text("go\\nstop\\nleft\\n")
        """,
    ),
    Step(
        "by a tree of phones",
        f"ppspeech train sentences_lexicon --data.corpus mine --model.vocabulary words.txt {QUICK}",
        "test_accuracy",
        slow=True,
    ),
    Step("attack sentences", "ppspeech attack sentences --quick --only shifted_scores", "failed|stated", slow=True),
    python("meetings, a call, and a take of two words", MEETINGS, "written"),
    Step("index what is not there", "ppspeech index nowhere -o no.archive", "nothing at nowhere", 2),
    Step(
        "index meetings",
        "ppspeech index meetings -o meetings.archive --bundle sentences",
        "2 recordings, .* 4 units",
        makes=("meetings.archive",),
    ),
    Step(
        "serve them",
        "ppspeech serve meetings.archive --listen 127.0.0.1:0",
        SERVED,
        goes_on=True,
    ),
    Step("where is it said", "ppspeech spot stop --server {address} --pin {pin}", "1 of 2 recordings"),
    Step("here, in the clear", "ppspeech spot stop --archive meetings.archive", "1 of 2 recordings"),
    Step("by a take of it", "ppspeech spot take.wav --server {address} --pin {pin}", "1 of 2 recordings"),
    Step(
        "learn it from takes",
        "ppspeech patches takes --background talks -o invoice.patches",
        r"36 patches.*from 8 clips",
        makes=("invoice.patches",),
    ),
    Step("by its patches", "ppspeech spot invoice.patches --server {address} --pin {pin}", "of 2 recordings"),
    Step("a take that is too short", "ppspeech spot clip.wav --server {address} --pin {pin}", "longer keyword", 2),
    Step(
        "serve keywords",
        "ppspeech serve sentences --spotting threshold=40 --listen 127.0.0.1:0",
        SERVED,
        goes_on=True,
    ),
    Step(
        "which are said in a call",
        "ppspeech spot --in call.wav --server {address} --pin {pin}",
        "(?s)left.*stop.*go.*1 of 1 recordings",
    ),
    Step(
        "for a margin",
        f"ppspeech train keyword_large_margin --data.corpus mine {QUICK}",
        "test_accuracy",
        slow=True,
    ),
    Step(
        "a large-margin classifier",
        f"ppspeech train large_margin --data.corpus mine {QUICK}",
        "test_accuracy",
        slow=True,
    ),
    Step(
        "a head on a public embedding",
        f"ppspeech train words_embedded --data.corpus mine {QUICK}",
        "test_accuracy",
        slow=True,
    ),
    python(
        "a few clips of commands",
        """
        import shutil
        from pathlib import Path
        for word in ("go", "stop"):
            for voice in ("f01", "m01", "f02"):
                folder = Path("commands") / word / voice
                folder.mkdir(parents=True)
                shutil.copy(f"mine/{voice}/{word}-calm-0.wav", folder / "1.wav")
        print("copied")
        """,
        "copied",
    ),
    Step(
        "learn them",
        "ppspeech words learn commands --out my_commands",
        "(?s)2 words.*false alarms in.*extrapolated.*nothing is promised",
        makes=("my_commands",),
        slow=True,
    ),
    Step("is it one of them", "ppspeech recognize my_commands clip.wav", "confidence", slow=True),
    Step(
        "words that the built-in voices say, for listening on",
        'ppspeech words learn --word "lights on" --word "lights off" --voices 12 --out lights --over window --alarms 1',
        "2 words",
        slow=True,
    ),
    Step(
        "with a promise, and another background",
        "ppspeech words learn commands --background mine --out promised --epsilon 4 --unit speaker",
        "in the background too",
        2,
        slow=True,
    ),
]

TEXTS = [
    python(
        "texts",
        """
        from pathlib import Path
        Path("calls.txt").write_text("good morning\\nI want my money back\\nno refund\\n")
        Path("genome.txt").write_text("ccgattacacc\\nacgtacgtacgt\\nggtacatttt\\n")
        Path("words.txt").write_text("HH AH L OW\\nG UH D B AY\\n")
        """,
    ),
    Step("serve calls", "ppspeech serve calls.txt --texts tells=count --listen 127.0.0.1:0", SERVED, goes_on=True),
    Step("search them", 'ppspeech grep "(refund|money) back" --server {address} --pin {pin}', r"calls\.txt: 1 line"),
    Step(
        "serve a genome",
        "ppspeech serve genome.txt --texts alphabet=dna,tells=places --listen 127.0.0.1:0",
        SERVED,
        goes_on=True,
    ),
    Step(
        "where is it",
        'ppspeech grep "g[ag]tt?aca" --server {address} --pin {pin} --tells places',
        r"(?s)genome\.txt:1:3.*genome\.txt:3:1",
    ),
    Step(
        "serve what was said, in phones",
        "ppspeech serve words.txt --texts alphabet=phones --listen 127.0.0.1:0",
        SERVED,
        goes_on=True,
    ),
    Step("search that", 'ppspeech grep "HH (AH|EH) L OW" --server {address} --pin {pin}', r"words\.txt:1\n"),
]

RELEASE = [
    Step(
        "a corpus",
        'ppspeech synth ward --words "go,stop,left" --speakers 8 --takes 2 --seed 1',
        "48 recordings",
    ),
    Step(
        "train with differential privacy, and attack the training",
        f"ppspeech train keyword_dp --data.corpus ward --audit canaries=100 {QUICK}",
        rf"(?s)-DP.*{CHECKPOINT}",
    ),
    Step("release it", "ppspeech export {checkpoint} --out private_words", "-DP for one utterance"),
    Step("look at it", "ppspeech inspect private_words", "-DP for one utterance"),
    Step(
        "no more than was stated",
        'ppspeech export {checkpoint} --out more --ledger other.jsonl --data "ward 7" --by ann --most 0.01 --begin',
        "nothing is released",
        2,
    ),
    python(
        "what was measured",
        """
        from pathlib import Path
        Path("figures.jsonl").write_text('{"metric": "ward.accuracy", "value": 0.5, "unit": ""}\\n')
        """,
    ),
    Step(
        "release it and enter it",
        'ppspeech export {checkpoint} --out words --ledger releases.jsonl --data "ward 7" --by ann --most 9 --begin '
        "--metrics figures.jsonl",
        "1 release of ward 7",
    ),
    Step("attack what it states", "ppspeech audit private_words", "no violation found"),
    Step(
        "and draw it",
        "ppspeech audit words --profile words.png",
        "no violation found",
        makes=("words.png",),
        slow=True,
    ),
    Step("attack a recipe", "ppspeech audit keyword_dp --quick", "canar", slow=True),
]

SPEAKERS = [
    Step("a corpus", 'ppspeech synth people --words "go,stop,left" --speakers 12 --takes 5', "180 recordings"),
    Step(
        "train speaker models",
        f"ppspeech train speaker_ubm --data.corpus people {QUICK}",
        rf"(?s)test_accuracy.*{CHECKPOINT}",
        slow=True,
    ),
    Step("release", "ppspeech export {checkpoint} --out voices --not-private", "speaker_ubm", slow=True),
    python(
        "clips by speaker",
        """
        import shutil
        from pathlib import Path
        from ppspeech.data import load_corpus
        corpus = load_corpus("people")
        who = corpus.speakers[:2]
        for name, speaker in zip(("ann", "bob"), who):
            own = [utterance.path for utterance in corpus if utterance.speaker == speaker]
            Path("folder", name).mkdir(parents=True)
            for place, path in enumerate(own[:4]):
                shutil.copy(path, f"folder/{name}/{place}.wav")
            shutil.copy(own[0], f"{name}.wav"); shutil.copy(own[4], f"{name}_again.wav")
        for speaker in corpus.speakers[2:]:
            Path("others", speaker).mkdir(parents=True)
            for place, path in enumerate([each.path for each in corpus if each.speaker == speaker][:5]):
                shutil.copy(path, f"others/{speaker}/{place}.wav")
        """,
        slow=True,
    ),
    Step(
        "is it her",
        "ppspeech verify voices ann_again.wav --enroll ann.wav --cohort others",
        "accepted|rejected",
        slow=True,
    ),
    Step(
        "who is it",
        "ppspeech identify voices ann_again.wav --speakers folder --cohort others",
        "ann|bob|nobody",
        slow=True,
    ),
    Step(
        "serve people",
        "ppspeech serve voices --enroll --state kept --speakers cohort=others --listen 127.0.0.1:0",
        SERVED,
        goes_on=True,
        slow=True,
    ),
    Step(
        "enroll",
        "ppspeech enroll voices ann.wav --name ann --server {address} --pin {pin} --json",
        r'"place": (?P<place>\d+)',
        slow=True,
    ),
    Step(
        "verify under encryption",
        "ppspeech verify voices ann_again.wav --claim {place} --server {address} --pin {pin}",
        "accepted|rejected",
        slow=True,
    ),
    Step(
        "identify under encryption", "ppspeech identify voices ann_again.wav --server {address} --pin {pin}", slow=True
    ),
    Step(
        "serve people by mixtures",
        "ppspeech serve voices --enroll --state mixed --scoring gmm --cohort others --listen 127.0.0.1:0",
        SERVED,
        goes_on=True,
        slow=True,
    ),
    Step(
        "enroll there",
        "ppspeech enroll voices ann.wav --name ann --server {address} --pin {pin} --json",
        r'"place": (?P<place>\d+)',
        slow=True,
    ),
    Step(
        "verify there",
        "ppspeech verify voices ann_again.wav --claim {place} --server {address} --pin {pin}",
        "accepted|rejected",
        slow=True,
    ),
    Step(
        "serve a crowd",
        "ppspeech serve voices --enroll --state crowded --scoring crowd --cohort others --listen 127.0.0.1:0",
        SERVED,
        goes_on=True,
        slow=True,
    ),
    Step(
        "a public network, and a cohort", "ppspeech voices learn others --out heard", "10 people of others", slow=True
    ),
    Step("the same of public speech", "ppspeech voices learn others --public --out spoken --json", "10", slow=True),
    Step("without a cohort", "ppspeech voices learn --without --out alone", "cohort of your own", slow=True),
    Step("the built-in voices", "ppspeech voices learn --built-in --out nobody", "who are nobody", slow=True),
    Step(
        "is it her, by its cohort",
        "ppspeech verify heard ann_again.wav --enroll ann.wav",
        "accepted|rejected",
        slow=True,
    ),
    Step(
        "serve voices of the network",
        "ppspeech serve heard --enroll --state heard_kept --listen 127.0.0.1:0",
        SERVED,
        goes_on=True,
        slow=True,
    ),
    Step(
        "serve voices without a cohort of theirs",
        "ppspeech serve alone --enroll --state alone_kept --cohort others --listen 127.0.0.1:0",
        SERVED,
        goes_on=True,
        slow=True,
    ),
    Step(
        "keep templates that one cannot read",
        "ppspeech serve voices --galleries --listen 127.0.0.1:0",
        SERVED,
        goes_on=True,
        slow=True,
    ),
    Step(
        "enroll there, and keep the key",
        "ppspeech enroll voices ann.wav --name ann --private family --threshold 0.5 --listen 127.0.0.1:0 "
        "--server {address} --pin {pin}",
        "keeping family at ",
        goes_on=True,
        slow=True,
    ),
    python(
        "what is kept is closed to others",
        """
        from pathlib import Path
        for path in (Path("kept"), Path("mixed"), *Path("kept").rglob("*"), *Path("mixed").rglob("*")):
            assert path.stat().st_mode & 0o077 == 0, (path, oct(path.stat().st_mode))
        """,
        slow=True,
    ),
]

SONGS = """
import numpy as np, soundfile
from pathlib import Path
rate, at = 16_000, np.arange(4_000) / 16_000
Path("songs").mkdir()
for place, name in enumerate(("waltz", "march", "lullaby")):
    chance = np.random.default_rng(place)
    chords = 220 * 2 ** (chance.integers(0, 36, size=(80, 3, 1)) / 12)
    notes = sum(np.sin(2 * np.pi * chords * over * at) / over for over in (1, 2, 3)).sum(axis=1) * np.exp(-6 * at)
    song = notes.ravel() / np.abs(notes).max() * 0.8
    soundfile.write(f"songs/{name}.wav", song, rate)
    if name == "march":
        soundfile.write("clip.wav", song[5 * rate : 11 * rate], rate)
print("written")
"""

MUSIC = [
    python("songs, and a clip of one", SONGS, "written"),
    Step("index them", "ppspeech music index songs -o songs.index", "3 songs", makes=("songs.index",)),
    Step("name it here", "ppspeech music find clip.wav --index songs.index", "clip.wav: march"),
    Step(
        "serve the index",
        "ppspeech music serve songs.index --listen 127.0.0.1:0",
        r"find clip\.wav --server (?P<address>127\.0\.0\.1:\d+) --pin (?P<pin>[0-9a-f]{64})",
        goes_on=True,
    ),
    Step(
        "name it without letting it be heard",
        "ppspeech music find clip.wav --server {address} --pin {pin}",
        "clip.wav: march",
    ),
]

SPOKEN = """
import numpy as np, soundfile
from pathlib import Path
from ppspeech.audio.voices import VOICES, Espeak
Path("my_digits").mkdir()
words = "zero one two three four five six seven eight nine".split()
with Espeak() as espeak:
    for digit, word in enumerate(words):
        for take in range(3):
            said = VOICES[45].say(word, espeak, np.random.default_rng([digit, take]))
            soundfile.write(f"my_digits/{digit}_{take}.wav", 0.5 * said / np.abs(said).max(), 16_000)
print("said")
"""

LOGIN = [
    python("somebody who is not in the cohort says the digits", SPOKEN, "said"),
    Step(
        "a cohort of nobody",
        "ppspeech voices learn --built-in --out nobody",
        "nobody",
        slow=True,
    ),
    Step(
        "let people in",
        "ppspeech login serve nobody --store people --listen 127.0.0.1:0",
        r"login check (?P<address>127\.0\.0\.1:\d+) NAME --key FILE --pin (?P<pin>[0-9a-f]{64})",
        goes_on=True,
        slow=True,
    ),
    Step(
        "enroll",
        "ppspeech login enroll {address} ann my_digits --key ann.key --pin {pin}",
        "ann may log in with the key ann.key",
        makes=("ann.key",),
        slow=True,
    ),
    Step(
        "log in",
        "ppspeech login check {address} ann --key ann.key --digits-from my_digits --pin {pin}",
        "ann: (welcome|not let in)",
        slow=True,
    ),
    Step("let somebody try again", "ppspeech login unlock ann --store people", "ann may try again", slow=True),
    Step("forget somebody", "ppspeech login remove ann --store people", "ann is forgotten", slow=True),
]

FILTERS = [
    Step("a corpus", 'ppspeech synth my_folder --words "go,stop,left" --speakers 10 --takes 6', "180", slow=True),
    Step(
        "a filter",
        "ppspeech filter train --config configs/filter_speaker.yaml --corpus my_folder --out quiet --plot quiet.png",
        "the filter: quiet; it proves nothing",
        makes=("quiet.png",),
        slow=True,
    ),
    Step("apply it", "ppspeech filter apply quiet my_folder --out filtered", "filtered", slow=True),
    Step("attack it", "ppspeech filter attack filtered --filter quiet", "worst of .* attackers", slow=True),
    Step(
        "with noise",
        "ppspeech filter apply quiet my_folder --out noisy --epsilon 8 --delta 1e-6 --most 10 --report",
        "(?s)-DP for one speaker.*worst of .* attackers",
        slow=True,
    ),
    Step(
        "a filter of codes",
        "ppspeech filter train --config configs/filter_codes.yaml --corpus my_folder --out codes "
        "--at-most 0.1 --people 60",
        "nobody names one of 60 people",
        slow=True,
    ),
    Step(
        "and what is certain of it",
        "ppspeech filter apply codes my_folder --out random --at-most 0.1 --people 60 --most 10",
        "(?s)-DP for one speaker.*nobody names one of 60 people",
        slow=True,
    ),
]

TABLE = """
import numpy as np
from pathlib import Path
chance = np.random.default_rng(0)
for name, rows in (("my", 1500), ("new", 400), ("alice", 40), ("bob", 60), ("carol", 50)):
    x = chance.uniform(10, 70, size=(rows, 2))
    lines = [f"{a:.2f},{b:.2f},{'yes' if a > b else 'no'}" for a, b in x]
    Path(f"{name}.csv").write_text("\\n".join(["height,weight,ill", *lines]) + "\\n")
print("written")
"""

MENU = '[["start","account","account"],["start","help","agent"],["account","close","sure"],["sure","yes","closed"]]'
CALLS = """--param 'letters=["account","help","close","yes"]' --param 'shape={"lines":2,"width":8,"size":16}'"""

TOGETHER = [
    python("tables of one's own", TABLE, "written"),
    Step(
        "learn together",
        "ppspeech simulate train_descent --parties 3 --table my.csv --label ill --radius 100 --epsilon 4 --out joint",
        r"(?s)most frequent class.*-DP for one record.*written to joint",
        makes=("joint",),
    ),
    Step("look at it", "ppspeech inspect joint", "linear_table"),
    Step(
        "ask a table",
        """ppspeech ask my.csv --epsilon 1 --query 'height > 40 and ill == "yes"'""",
        r"(?s)1,500 records; a budget of 1 .* 1 is left.*cost 0\.1, 0\.9 left",
        makes=("my.asked.sqlite",),
    ),
    Step("go on", "ppspeech ask my.csv --query 'ill == \"no\"' --each 0.8 --json", r'"left": 0\.1}'),
    Step("until nothing is left", "ppspeech ask my.csv --query 'height > 1' --each 0.2", "0.1 is left: 0.2 more", 2),
    Step("a question that is none", "ppspeech ask my.csv --query 'height > tall'", "makes no sense at 'tall'", 2),
    python(
        "calls of people, and questions",
        """
        from pathlib import Path
        rows = [f"p{at % 20000},{18 + at % 60},{('yes', 'no')[at % 7 == 0]}" for at in range(30000)]
        Path("calls.csv").write_text("\\n".join(["person,age,word", *rows]) + "\\n")
        Path("questions.txt").write_text("age > 60\\nword == 'yes'\\n")
        """,
    ),
    Step(
        "how many of them",
        """ppspeech ask calls.csv --epsilon 1 --who person --query 'age > 60 and word == "yes"'""",
        r"cost 0\.1, 0\.9 left",
    ),
    Step("a list of questions", "ppspeech ask calls.csv --who person --queries questions.txt --json", r'"left": 0\.7}'),
    Step(
        "a session",
        """ppspeech ask calls.csv --who person --each 0.5 --about "old: age > 60" --about "yes: word == 'yes'" """
        "--query 'old and not yes'",
        r"old and not yes: .*; hard, \d+ hard ones left",
    ),
    Step("apply it", "ppspeech classify joint new.csv --label ill --out found.csv", r"right", makes=("found.csv",)),
    Step(
        "for programs",
        "ppspeech simulate train_descent --table my.csv --label ill --radius 100 --json",
        r'"majority": 0\.',
    ),
    Step(
        "an average",
        "ppspeech simulate train_average --parties 3 --table my.csv --label ill --radius 100 --json",
        r'"majority": 0\.',
    ),
    Step("eigenvectors", "ppspeech simulate eigen --parties 3 --table my.csv --label ill", "does not use --label", 2),
    Step(
        "a table for eigenvectors",
        "ppspeech simulate eigen --parties 2 --table my.csv",
        "error:.*ill must be a finite number",
        code=2,
    ),
    Step(
        "eigenvectors of a known table",
        "ppspeech simulate eigen --parties 3 --table breast_cancer",
        "cos",
        needs="adult",
    ),
    Step(
        "an epsilon is not ignored",
        "ppspeech simulate eigen --parties 3 --table breast_cancer --epsilon 3",
        r"\(3, 1e-06\)-DP",
        needs="adult",
    ),
    Step(
        "one dies",
        "ppspeech simulate train_descent --parties 3 --table my.csv --label ill --radius 100 --kill party1",
        "party1 is gone.*take it out",
        code=2,
        told=True,
    ),
    python(
        "tables of people",
        """
        import numpy as np
        from pathlib import Path
        chance = np.random.default_rng(1)
        rows = [f"p{at},{18 + at % 60},{'fm'[at % 2]},{chance.normal():.9f}" for at in range(200)]
        Path("people.csv").write_text("\\n".join(["name,age,sex,voice", *rows]) + "\\n")
        """,
    ),
    Step(
        "make it anonymous, which promises nothing",
        "ppspeech anonymize people.csv --k 10 --quasi age,sex --out anonymous.csv",
        r"(?s)at least \d\d rows are alike.*as they are: name, voice.*no guarantee \(none\)",
        makes=("anonymous.csv",),
    ),
    Step(
        "whom does it name",
        "ppspeech audit anonymous.csv --known people.csv --person name",
        r"audit\.anonymous\.named\s+1\b",
    ),
    *[
        Step(f"{name} makes a certificate", f"ppspeech party --make --certificate {name}.pem --key {name}.key", "pin")
        for name in ("curator", "alice", "bob", "carol")
    ],
    Step("a file to start from", "ppspeech party train_descent --example", "protocol: train_descent"),
    python(
        "it is kept",
        """
        from pathlib import Path
        from ppspeech.cli.party_example import example_file
        from ppspeech.protocols import PROTOCOLS
        import socket
        PROTOCOLS.look_in("ppspeech.training.together")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            text = example_file(PROTOCOLS["train_descent"]).replace(":7000", f":{free.getsockname()[1]}")
        Path("parties.yaml").write_text(text)
        rows = [line.split(",") for line in Path("bob.csv").read_text().split()[1:]]
        Path("rows.csv").write_text("".join(f"{a},{b},{int(ill == 'yes')}\\n" for a, b, ill in rows))
        """,
    ),
    *[
        Step(
            f"{name} joins",
            f"ppspeech party train_descent --role {name} --config parties.yaml --certificate {name}.pem "
            f"--key {name}.key{brings}",
            says,
            goes_on=goes_on,
        )
        for name, brings, says, goes_on in (
            ("curator", "", "", True),
            ("alice", " --table alice.csv --label ill --out alices", "looking for curator", True),
            ("bob", " --input @rows.csv --out bobs", "looking for curator", True),
            ("carol", " --table carol.csv --label ill --out carols", "(?s)-DP for one record.*to carols", False),
        )
    ],
    Step("all hold a bundle", "ppspeech classify carols new.csv --label ill", "right"),
    Step(
        "alice waits with a number",
        "ppspeech party millionaires --role alice --listen 127.0.0.1:0 --input 5 --transcript",
        r"--connect (?P<there>127\.0\.0\.1:\d+) --pin (?P<pin>[0-9a-f]{64}) --ticket (?P<ticket>[0-9a-f]{32})",
        goes_on=True,
    ),
    Step(
        "bob has a larger one",
        "ppspeech party millionaires --role bob --connect {there} --pin {pin} --ticket {ticket} --input 7 --transcript",
        "(?s)base_point.*alice is not richer",
    ),
    Step(
        "a menu waits for callers",
        f"""ppspeech party walk --role owner --listen 127.0.0.1:0 --input '{MENU}' --input start """
        f"""--input '["agent","closed"]' {CALLS}""",
        r"--connect (?P<there>127\.0\.0\.1:\d+) --pin (?P<pin>[0-9a-f]{64}) --ticket (?P<ticket>[0-9a-f]{32})",
        goes_on=True,
    ),
    Step(
        "where calls end",
        "ppspeech party walk --role walker --connect {there} --pin {pin} --ticket {ticket} "
        f"""--input '[["help"],["account","yes"]]' {CALLS}""",
        "walker: ",
    ),
    Step(
        "an input that is none is refused before bob comes",
        "ppspeech party millionaires --role alice --listen 127.0.0.1:0 --input five",
        "whole",
        code=2,
    ),
]

GIVEN = {
    "hook = PrivacyHook(": """
import pytorch_lightning as lightning
import torch
from torch.utils.data import DataLoader, TensorDataset

from ppspeech.training import PrivacyHook, quiet_lightning, release

class Mine(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def training_step(self, batch, _):
        return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

quiet_lightning()
x = torch.randn(1000, 4)
module, loader = Mine(), DataLoader(TensorDataset(x, (x[:, 0] > 0).long()), batch_size=50)
""",
}
"""What a block of Python that a document shows takes for granted, by how it begins."""

LIBRARY = [
    Step("a corpus", 'ppspeech synth voices --words "go,stop" --speakers 6 --takes 2', "24 recordings"),
    Step(
        "a model",
        f"ppspeech train keyword_hmm --data.corpus voices {QUICK}",
        rf"(?s){CHECKPOINT}",
    ),
    Step("released", "ppspeech export {checkpoint} --out words --not-private", "words"),
    python(
        "a clip",
        """
        import shutil
        from pathlib import Path
        shutil.copy(sorted(Path("voices").rglob("*.wav"))[0], "clip.wav")
        """,
    ),
    *[
        python(
            f"Python of {document}, {place}",
            next((GIVEN[start] for start in GIVEN if code.startswith(start)), "") + code,
        )
        for place, (document, code) in enumerate(python_blocks(), start=1)
    ],
    python(
        "features of an array",
        """
        import numpy as np
        from ppspeech.audio import Mfcc
        print(Mfcc()(np.random.default_rng(0).normal(size=16000)).features.shape)
        """,
        "39",
    ),
    python(
        "a hidden Markov model on arrays",
        """
        import torch
        from ppspeech.models import HiddenMarkovModel
        from ppspeech.models.hmm import GaussianEmission, left_right
        model = HiddenMarkovModel(left_right(3), GaussianEmission(2, 3, 4, covariance="diagonal"))
        print(model(torch.randn(5, 20, 4), torch.tensor([20, 20, 18, 12, 9])).shape)
        """,
        r"5, 2",
    ),
    python(
        "a filter of a table",
        """
        import numpy as np
        from ppspeech.filters import learn_filter
        chance = np.random.default_rng(0)
        task, person = chance.integers(0, 2, 300), chance.integers(0, 3, 300)
        x = chance.normal(size=(300, 6)); x[:, 0] += 3 * task; x[:, 1] += 3 * person
        print(learn_filter(x.astype("float32"), task, person, features=2))
        """,
    ),
    python(
        "everything in one import",  # by a process that has imported nothing yet, unlike those of other steps
        """
        import subprocess, sys
        code = "import ppspeech; ppspeech.audio; print(ppspeech.load_bundle('words').labels)"
        subprocess.run([sys.executable, "-c", code], check=True)
        """,
        "go",
    ),
]

MISUSE = [
    Step("no such command", "ppspeech sing", "(?i)no such command", code=2),
    Step("markup in a name", "ppspeech features 'no[/red]file.wav' --out x.npz", r"no\[/red\]file\.wav", code=2),
    Step("a bundle that is none", "ppspeech inspect nowhere", "nowhere", code=2),
    Step("a corpus that is none", "ppspeech corpus nowhere", "nowhere", code=2),
    Step("nobody there", "ppspeech recognize 127.0.0.1:9 clip.wav --insecure", "error", code=2),
    Step("an unknown protocol", "ppspeech simulate poker", "train_words can be simulated", code=2),
    Step("a key for what servers share", "ppspeech keys store secrets", "keep a copy", makes=("secrets/store.key",)),
    Step("the same again", "ppspeech keys store secrets", "a key is not replaced", code=2),
    python("a text", """from pathlib import Path; Path("text.txt").write_text("seven nine")"""),
    Step(
        "a password that everybody can read",
        "ppspeech serve text.txt --store postgresql://ann:hush@127.0.0.1:9/words --store-key secrets/store.key",
        r"(?s)\A(?!.*hush).*PGPASSFILE",
        code=2,
    ),
    Step(
        "a database that is not there",
        "ppspeech serve text.txt --store postgresql://ann@127.0.0.1:9/words --store-key secrets/store.key",
        "cannot be reached",
        code=2,
    ),
    Step(
        "a database without a key",
        "ppspeech serve text.txt --store postgresql://ann@127.0.0.1:9/words",
        "keys store FOLDER",
        code=2,
    ),
    Step("an option that does nothing", "ppspeech simulate train_words --penalty 1", "does not use --penalty", code=2),
    Step("an epsilon below zero", "ppspeech simulate train_descent --epsilon -1", "epsilon", code=2, needs="adult"),
    python(
        "a file where a folder is needed",
        """
        from pathlib import Path
        Path("file").write_text("")
        """,
    ),
    Step("a corpus into a file", 'ppspeech synth file/x --words "go" --speakers 1 --takes 1', "file", code=1),
]

STAGES: dict[str, list[Step]] = {
    "look": LOOK,
    "demo": DEMO,
    "own": OWN,
    "words": WORDS,
    "texts": TEXTS,
    "release": RELEASE,
    "speakers": SPEAKERS,
    "login": LOGIN,
    "music": MUSIC,
    "filters": FILTERS,
    "together": TOGETHER,
    "library": LIBRARY,
    "misuse": MISUSE,
}
