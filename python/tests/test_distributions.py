"""What each Python distribution holds and says, and that it works with what it declares alone."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from email.message import Message
from email.parser import Parser
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final, NamedTuple
from zipfile import ZipFile

import pytest
from hatchling import build
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).parents[2]
CORE: Final = {"antipode-sdk": "python", "antipode-check": "python/check", "antipode-testing": "python/testing"}
SHIMS: Final = {
    f"antipode-{folder.parent.name}": str(folder.relative_to(ROOT)) for folder in sorted(ROOT.glob("shims/*/python"))
}
FOLDERS: Final = {**CORE, **SHIMS, "antipode-lab": "lab"}
REPOSITORY: Final = "https://github.com/ANTIPODE-ORG/antipode"
LINKS: Final = {"homepage", "documentation", "source", "changelog", "issues", "security"}
VERSIONS: Final = {f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 15)}


class Built(NamedTuple):
    """What was built of one distribution."""

    wheel: Path
    sdist: Path

    def files(self) -> dict[str, bytes]:
        """Return what the wheel installs beside its own description."""
        with ZipFile(self.wheel) as archive:
            return {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}

    def about(self, name: str) -> bytes:
        """Return a file of the wheel's own description, or nothing where it has none."""
        with ZipFile(self.wheel) as archive:
            return next((archive.read(each) for each in archive.namelist() if each.endswith(f".dist-info/{name}")), b"")

    def metadata(self) -> Message:
        """Return the wheel's metadata."""
        return Parser().parsestr(self.about("METADATA").decode())


def made(folder: Path, kind: str, to: Path) -> Path:
    """Build the distribution of a folder, as pip has it built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return to / str(getattr(build, f"build_{kind}")(str(to)))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    to = tmp_path_factory.mktemp("built")
    return {
        name: Built(*(made(ROOT / folder, kind, to) for kind in ("wheel", "sdist"))) for name, folder in FOLDERS.items()
    }


def project(name: str) -> dict[str, Any]:
    return dict(tomllib.loads((ROOT / FOLDERS[name] / "pyproject.toml").read_text("utf-8"))["project"])


# What is in them


def test_each_file_of_the_core_s_tree_is_in_one_wheel(built: dict[str, Built]) -> None:
    held = {name: set(built[name].files()) for name in CORE}
    assert not held["antipode-sdk"] & held["antipode-check"] | held["antipode-sdk"] & held["antipode-testing"]
    assert not held["antipode-check"] & held["antipode-testing"]
    tree = ROOT / "python/src"
    assert set().union(*held.values()) == {
        str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_checker_and_the_kit_are_in_wheels_of_their_own(built: dict[str, Built]) -> None:
    assert not [
        name for name in built["antipode-sdk"].files() if name.startswith(("antipode/check/", "antipode/testing/"))
    ]
    assert all(name.startswith(("antipode/check/", "antipode/cli/check")) for name in built["antipode-check"].files())
    assert all(name.startswith("antipode/testing/") for name in built["antipode-testing"].files())
    assert b"pytest11" not in built["antipode-sdk"].about("entry_points.txt")  # installing it loads nothing into pytest
    assert b"pytest11" in built["antipode-testing"].about("entry_points.txt")


@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_installed_is_typed_and_no_test(built: dict[str, Built], name: str) -> None:
    files = built[name].files()
    packages = {path.split("/")[0] for path in files}
    assert packages == {"antipode" if name in CORE else name.replace("-", "_")}
    if name not in {"antipode-check", "antipode-testing"}:  # the marker of the package is that of all within it
        assert f"{packages.pop()}/py.typed" in files


@pytest.mark.parametrize("name", FOLDERS)
def test_a_wheel_of_the_sdist_is_the_tree_s(built: dict[str, Built], name: str, tmp_path: Path) -> None:
    with tarfile.open(built[name].sdist) as archive:
        assert all(member.isfile() for member in archive)  # no link that leads out of it
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert made(unpacked, "wheel", tmp_path).read_bytes() == built[name].wheel.read_bytes()


@pytest.mark.parametrize("name", CORE)
def test_an_editable_one_leads_to_the_one_tree(name: str, tmp_path: Path) -> None:
    wheel = Built(made(ROOT / FOLDERS[name], "editable", tmp_path), tmp_path)
    ((path, text),) = wheel.files().items()
    assert (path.endswith(".pth"), text.decode().strip()) == (True, str(ROOT / "python/src"))
    assert wheel.about("entry_points.txt").decode().count(" = ") == sum(
        map(len, [project(name).get("scripts", {}), *project(name).get("entry-points", {}).values()])
    )


# What they say


@pytest.mark.parametrize("name", FOLDERS)
def test_the_metadata_says_what_a_user_looks_for(built: dict[str, Built], name: str) -> None:
    said = built[name].metadata()
    assert (said["Name"], said["License-Expression"], said["Author"]) == (name, "Apache-2.0", "The Antipode authors")
    for text in ("LICENSE", "NOTICE"):
        assert built[name].about(f"licenses/{text}") == (ROOT / text).read_bytes()
    assert {each.split(", ")[0].lower() for each in said.get_all("Project-URL", [])} == LINKS
    assert said["Keywords"]
    classifiers = said.get_all("Classifier", [])
    assert {each for each in classifiers if "Python :: 3." in each} == VERSIONS
    assert any(each.startswith("Development Status") for each in classifiers)
    assert said["Requires-Python"] == ">=3.11"


@pytest.mark.parametrize("name", FOLDERS)
def test_the_page_is_short_and_its_links_lead_somewhere(built: dict[str, Built], name: str) -> None:
    said = built[name].metadata()
    page = str(said.get_payload())
    assert 80 <= len(re.sub(r"```.*?```", "", page, flags=re.DOTALL).split()) <= 400
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert all(link.startswith("https://") for link in links)
    links += [each.split(", ")[1] for each in said.get_all("Project-URL", [])]
    for link in links:
        assert link.startswith(REPOSITORY)
        path, _, heading = link.partition("/blob/main/")[2].partition("#")
        assert (ROOT / path).exists()
        if heading:
            headings = re.findall(r"^#+ (.*)$", (ROOT / path).read_text("utf-8"), re.MULTILINE)
            assert heading in {each.lower().replace(" ", "-") for each in headings}


def test_all_have_one_version_and_need_each_other_in_that_minor(built: dict[str, Built]) -> None:
    versions = {built[name].metadata()["Version"] for name in FOLDERS}
    (version,) = versions
    assert f'__version__ = "{version}"' in (ROOT / "python/src/antipode/__init__.py").read_text("utf-8")
    wanted = f"~={version.rpartition('.')[0]}.0"
    for name in FOLDERS:
        for each in built[name].metadata().get_all("Requires-Dist", []):
            needed = Requirement(each)
            if needed.name.startswith("antipode"):
                assert str(needed.specifier) == wanted, f"{name} needs {each}"
    extras = project("antipode-sdk")["optional-dependencies"]
    assert {each.removeprefix("antipode-") for each in SHIMS} < set(extras)


# That they work with what they declare


def needed(names: Sequence[str], built: dict[str, Built]) -> dict[str, Path | None]:
    """Return all that installing these requirements brings: our wheels, and what is installed here of the others."""
    found: dict[str, Path | None] = {}
    asked = [Requirement(name) for name in names]
    done = set()
    while asked:
        requirement = asked.pop()
        name = canonicalize_name(requirement.name)
        if (name, *requirement.extras) in done:
            continue
        done.add((name, *requirement.extras))
        ours = built.get(name)
        found[name] = ours.wheel if ours else None
        wants = ours.metadata().get_all("Requires-Dist", []) if ours else distribution(name).requires or []
        asked += [
            each
            for each in map(Requirement, wants)
            if not each.marker or any(each.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras))
        ]
    return found


class Environment(NamedTuple):
    """A folder with what one installed, and nothing else that is installed here."""

    site: Path

    def run(self, code: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Run code with what is installed here."""
        start = f"import sys; sys.path.append({str(self.site)!r}); sys.argv[1:] = {words!r}\n"
        return subprocess.run(
            [sys.executable, "-I", "-S", "-c", start + code], capture_output=True, text=True, timeout=60, check=False
        )

    def command(self, *words: str) -> tuple[int, str, str]:
        """Run the command `antipode`."""
        ran = self.run(
            "from importlib.metadata import entry_points\n"
            "(found,) = entry_points(group='console_scripts', name='antipode')\n"
            "sys.argv[0] = 'antipode'\n"
            "sys.exit(found.load()())",
            *words,
        )
        return ran.returncode, ran.stdout, ran.stderr


def installed(built: dict[str, Built], site: Path, *names: str) -> Environment:
    """Install these requirements, from the wheels and by links to what is installed here."""
    for name, wheel in needed(names, built).items():
        if wheel:
            with ZipFile(wheel) as archive:
                archive.extractall(site)
            continue
        for file in distribution(name).files or []:
            if ".." not in file.parts and "__pycache__" not in file.parts:
                link = site / file
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(Path(str(file.locate())))
    return Environment(site)


BARRIER: Final = """
import antipode, antipode.memory
store = antipode.memory.Store("posts", regions=["a", "b"], lag=0.01)
writer, reader = store.client("a"), store.client("b")
with antipode.scope():
    writer.set("k", b"v")
    antipode.barrier(timeout=10)
    assert reader.get("k") == b"v"
assert not {"typer", "rich", "tenacity", "pytest"} & set(sys.modules)
"""


def test_the_sdk_alone_passes_a_barrier_and_says_what_the_command_needs(
    built: dict[str, Built], tmp_path: Path
) -> None:
    alone = installed(built, tmp_path, "antipode-sdk")
    assert not [path for name in ("typer", "rich", "tenacity", "pytest", "_pytest") for path in tmp_path.glob(name)]
    ran = alone.run(BARRIER)
    assert (ran.returncode, ran.stderr) == (0, "")
    told = "antipode: the command needs typer and rich: pip install 'antipode-sdk[cli]'.\n"
    assert alone.command("version") == (2, "", told)


def test_the_command_without_the_checker_says_where_it_is(built: dict[str, Built], tmp_path: Path) -> None:
    command = installed(built, tmp_path, "antipode-sdk[cli]").command
    assert command("version")[0] == 0
    told = "antipode: check is a package of its own: pip install antipode-check.\n"
    for words in ([], ["--help"], ["records", "--json", "--html", "x"]):
        assert command("check", *words) == (2, "", told)
    assert "antipode-check" in command("--help")[1]


def test_the_checker_checks(built: dict[str, Built], tmp_path: Path) -> None:
    command = installed(built, tmp_path / "site", "antipode-check").command
    code, out, _ = command("check", "--help")
    assert (code, "--baseline" in out) == (0, True)
    (tmp_path / "records.jsonl").write_text("no record\n")
    page = tmp_path / "page.html"
    code, out, err = command("check", "--html", str(page), str(tmp_path / "records.jsonl"))
    assert (code, err, "could not be read (1)" in out) == (2, "", True)
    assert page.exists()


def test_the_kit_brings_its_fixture_to_pytest(built: dict[str, Built], tmp_path: Path) -> None:
    kit = installed(built, tmp_path / "site", "antipode-testing")
    (tmp_path / "test_one.py").write_text(
        "import antipode.testing.adversary, antipode.testing.conformance, antipode.testing.failover\n"
        "def test_one(antipode_isolated): antipode.testing.assert_barriers('posts', at_least=0)\n"
    )
    ran = kit.run("import pytest; sys.exit(pytest.main(sys.argv[1:]))", "-q", "--rootdir", str(tmp_path), str(tmp_path))
    assert (ran.returncode, "1 passed" in ran.stdout) == (0, True), ran.stdout + ran.stderr


@pytest.mark.parametrize("name", [*SHIMS, "antipode-lab"])
def test_it_imports_with_what_it_declares(built: dict[str, Built], name: str, tmp_path: Path) -> None:
    extra = "[binary]" if "binary" in project(name).get("optional-dependencies", {}) else ""
    ran = installed(built, tmp_path, name + extra).run(f"import {name.replace('-', '_')}")
    assert (ran.returncode, ran.stderr) == (0, "")
