"""Set-up with stand-ins for Python, the installers and Chromium: what runs, and what is said."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import PIL.Image
import pytest

from scripts import assets
from scripts.setup import Place, main
from scripts.system import output_of, problem_of

ROOT = Path(__file__).parents[1]

# Logs each call; makes "environments" that hold itself; files in its folder make a call fail.
FAKE_PYTHON = r"""#!/bin/sh
home=@HOME@
echo "$*" | head -n 1 | sed "s|$home||g" >> "$home/log"
fails() { [ -e "$home/fail-$1" ] && { cat "$home/fail-$1"; exit 1; }; }
case "$*" in
    "-m venv "*) fails venv; mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; echo x > "$4/pyvenv.cfg";;
    "-m pip "*uv*) fails network;;
    "-m uv "*) fails network; fails uv;;
    "-m pip "*) fails network;;
    "-m playwright "*) echo "Error: Failed to download it, caused by"; exit 1;;
    "-m scripts.setup"*) cd @ROOT@ && exec @PYTHON@ "$home/entry.py" "$@";;
    *load_settings*) fails data; echo "$home/data";;
    *rendering_problem*) fails render; echo;;
esac
exit 0
"""
TOOLS = ("sh", "cp", "mkdir", "cat", "head", "sed", "echo", "make", "env", "awk")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A bare machine: a project in a folder with spaces, few programs, no root, no real network."""
    root = tmp_path / "my project"
    programs = tmp_path / "bin"
    programs.mkdir()
    for tool in TOOLS:
        (programs / tool).symlink_to(shutil.which(tool) or f"/bin/{tool}")
    for name in ("bwrap", "chromium"):
        program(programs / name, "#!/bin/sh\n")
    root.mkdir()
    for name in ("requirements.txt", "requirements-dev.txt", "Makefile"):
        shutil.copy(ROOT / name, root)
    shutil.copytree(ROOT / "scripts", root / "scripts")
    (root / "assets").mkdir()
    (root / "assets" / assets.STYLESHEET).write_text("p{}")
    sha256 = hashlib.sha256(b"p{}").hexdigest()
    monkeypatch.setattr(assets, "STYLESHEET_SHA256", sha256)
    script = FAKE_PYTHON.replace("@HOME@", f"'{tmp_path}'").replace("@ROOT@", f"'{ROOT}'")
    base = program(programs / "python3", script.replace("@PYTHON@", f"'{sys.executable}'"))
    entry = "import sys; from pathlib import Path; from scripts import assets, setup\n"
    entry += f"assets.STYLESHEET_SHA256 = {sha256!r}\n"
    entry += f"sys.exit(setup.main(sys.argv[3:], setup.Place(Path({str(root)!r}), {str(base)!r})))"
    (tmp_path / "entry.py").write_text(entry)
    for name in ("SWEET_CHROMIUM", "PYTHON", "MAKEFLAGS", "MAKELEVEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return Place(root, str(base))


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def log(machine: Place) -> list[str]:
    return (machine.root.parent / "log").read_text().splitlines()


def fail(machine: Place, what: str, saying: str) -> None:
    (machine.root.parent / f"fail-{what}").write_text(saying)


def test_a_bare_machine_is_set_up_in_order(
    machine: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], machine) == 0
    calls = [re.sub(r"/my project/", "", line) for line in log(machine)]
    assert calls[:3] == [
        "-m venv --clear .venv",
        "-m pip install --quiet uv>=0.9",
        "-m uv pip install --python .venv/bin/python -r requirements-dev.txt",
    ]
    assert machine.is_ready()
    recorded = (machine.root / ".setup" / "chromium").read_text().strip()
    assert Path(recorded).name == "chromium"
    assert (machine.root / "assets" / assets.PICTURE).exists()
    assert "Set-up is done." in capsys.readouterr().out


def test_a_second_set_up_installs_nothing(machine: Place) -> None:
    assert main(["--check"], machine) == 1
    main([], machine)
    assert main(["--check"], machine) == 0
    before = len(log(machine))
    assert main([], machine) == 0
    assert not [line for line in log(machine)[before:] if "install" in line or "venv -" in line]


@pytest.mark.parametrize("change", ["pins", "environment", "python"])
def test_a_set_up_that_no_longer_holds_is_made_again(machine: Place, change: str) -> None:
    main([], machine)
    if change == "pins":
        (machine.root / "requirements.txt").write_text("torch\n")
    elif change == "environment":
        shutil.rmtree(machine.venv)
    else:
        (machine.venv / "pyvenv.cfg").write_text("version = 3.12.9")
    assert main(["--check"], machine) == 1
    before = len(log(machine))
    assert main([], machine) == 0
    assert any("uv pip install" in line for line in log(machine)[before:])
    assert main(["--check"], machine) == 0


def test_pip_takes_over_where_uv_cannot_install(machine: Place) -> None:
    fail(machine, "uv", "no such index")
    assert main([], machine) == 0
    assert any(line.startswith("-m pip install -r") for line in log(machine))


def test_without_a_network_it_says_so_and_can_go_on_later(
    machine: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(machine, "network", "Name or service not known")
    assert main([], machine) == 1
    said = capsys.readouterr().out
    assert "Name or service not known" in said
    assert "PIP_INDEX_URL" in said
    assert main(["--check"], machine) == 1
    (machine.root.parent / "fail-network").unlink()
    assert main([], machine) == 0


def test_a_python_that_cannot_make_environments_names_the_package(
    machine: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(machine, "venv", "The virtual environment was not created: ensurepip is not available")
    assert main([], machine) == 1
    assert re.search(r"apt-get install python3\.\d+-venv", capsys.readouterr().out)


def test_a_data_folder_that_cannot_be_written_names_the_setting(
    machine: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    fail(machine, "data", "PermissionError: [Errno 13] Permission denied: '/data'")
    assert main([], machine) == 1
    said = capsys.readouterr().out
    assert "Permission denied: '/data'" in said
    assert "SWEET_DATA=" in said


def test_a_project_folder_that_cannot_be_written_is_no_traceback(
    machine: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine.root / ".setup").write_text("a file where the folder should be")
    assert main([], machine) == 1
    assert "Set-up failed." in capsys.readouterr().out


@pytest.mark.parametrize("missing", ["chromium", "bwrap"])
def test_a_missing_extra_is_said_with_what_to_do_and_stops_nothing(
    machine: Place, missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine.root.parent / "bin" / missing).unlink()
    assert main([], machine) == 0
    package = {"chromium": "chromium", "bwrap": "bubblewrap"}[missing]
    assert f"apt-get install {package}" in capsys.readouterr().out
    assert main(["--check"], machine) == 0


def test_a_chromium_that_does_not_render_is_not_recorded(
    machine: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = machine.python
    script = Path(machine.base).read_text().replace("fails render; echo", "echo it crashed")
    Path(machine.base).write_text(script)
    assert main([], machine) == 0
    assert "does not render: it crashed" in capsys.readouterr().out
    assert path.exists()
    assert not (machine.root / ".setup" / "chromium").exists()


def test_make_run_sets_up_once_and_then_only_starts_the_app(machine: Place) -> None:
    make = ["make", "-C", str(machine.root), "run"]
    assert problem_of(make, 60) == ""
    assert log(machine)[-1] == "app.py"
    before = len(log(machine))
    assert problem_of(make, 60) == ""
    assert log(machine)[before:] == ["-m scripts.setup --check", "app.py"]


def test_make_run_does_not_start_the_app_after_a_failed_set_up(machine: Place) -> None:
    fail(machine, "network", "Name or service not known")
    problem = problem_of(["make", "-C", str(machine.root), "run"], 60)
    assert "Set-up failed." in problem
    assert "app.py" not in log(machine)


def find_python(tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """What python.sh says on a machine whose only Python is an old one."""
    program(
        tmp_path / "python3",
        '#!/bin/sh\n[ "$1" = --version ] && { echo Python 3.9.6; exit; }\nexit 1\n',
    )
    return subprocess.run(
        ["/bin/sh", ROOT / "scripts" / "python.sh"],
        env={"PATH": str(tmp_path), **env},
        capture_output=True,
        text=True,
    )


def test_a_machine_with_only_an_old_python_is_told_what_to_install(tmp_path: Path) -> None:
    done = find_python(tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "needs Python 3.11 or newer; found: Python 3.9.6" in done.stderr
    assert "brew install" in done.stderr


def test_a_named_python_is_taken_or_refused_and_never_replaced(tmp_path: Path) -> None:
    real = sys.executable
    assert find_python(tmp_path, PYTHON=real).stdout.strip() == real
    refused = find_python(tmp_path, PYTHON=str(tmp_path / "python3"))
    assert refused.returncode == 1
    assert "is no Python of at least 3.11" in refused.stderr


def test_a_command_without_an_end_or_a_program_is_a_problem_in_words() -> None:
    assert problem_of(["sleep", "60"], 0.2) == "no end after 0.2 s"
    assert "no-such-program" in problem_of(["no-such-program"], 5)
    assert output_of(["no-such-program"]) is None


# Assets


def test_the_placeholder_is_a_picture() -> None:
    picture = PIL.Image.open(io.BytesIO(assets.placeholder_png()))
    picture.load()
    assert picture.size == (640, 480)
    assert len(set(picture.getdata())) == 2


@pytest.mark.parametrize("genuine", [True, False])
def test_without_npm_the_stylesheet_comes_from_the_registry_and_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, genuine: bool
) -> None:
    served = tmp_path / "registry"
    package = served / "tailwindcss" / "-" / "tailwindcss-2.2.19.tgz"
    package.parent.mkdir(parents=True)
    with tarfile.open(package, "w:gz") as tar:
        info = tarfile.TarInfo("package/dist/tailwind.min.css")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"p{}"))
    handler = partial(SimpleHTTPRequestHandler, directory=str(served))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *_: None)
    if genuine:
        digest = hashlib.sha256(b"p{}").hexdigest()
        monkeypatch.setattr(assets, "STYLESHEET_SHA256", digest)
    monkeypatch.setenv("PATH", os.devnull)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", f"http://127.0.0.1:{server.server_port}/")
        problem = assets.prepare_assets(tmp_path / "assets")
        server.shutdown()
    assert (tmp_path / "assets" / assets.STYLESHEET).exists() is genuine
    assert problem == "" if genuine else "not Tailwind 2.2.19's" in problem
