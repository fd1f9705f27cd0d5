"""The command `antipode` itself, its `inspect` and `version` (API section 5)."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from antipode import cli
from antipode._base.seal_keys import Keys
from antipode._model.lineage import Lineage
from antipode._model.wire import hashed_key
from antipode._model.write_id import Opaque, Ordered, WriteId
from antipode._trust import seal
from commands import Ran, Run, install_package, runner
from hypothesis import given
from hypothesis import strategies as st

EXAMPLE = "1~blog-acl..0-1.57~blog-posts..8371ab90c2d4e6f1.1042~_.i"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(monkeypatch, capsys)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install_package(tmp_path, monkeypatch)


# inspect


def test_inspect_looks_as_documented(run: Run) -> None:
    assert run("inspect", EXAMPLE) == Ran(
        0,
        "lineage, 56 bytes, INCOMPLETE (something that belonged here is missing, in a store that is not known)\n"
        "  blog-acl    position 57    epoch 0-1\n"
        "  blog-posts  position 1042  epoch 8371ab90c2d4e6f1\n",
        "",
    )


def test_inspect_shows_objects_opaque_versions_hashed_keys_and_what_is_missing(run: Run) -> None:
    lineage = Lineage(
        [
            WriteId("cart", "user 7", Ordered("", 12)),
            WriteId("cart", "user 7", Ordered("e1", 3)),
            WriteId("img", "cat.jpg", Opaque("3sL4")),
            WriteId("img", hashed_key(b"a private name"), Opaque("m")),
        ]
    ).marked_incomplete("img", "acl")
    ran = run("inspect", lineage.serialize())
    lines = ran.out.splitlines()
    assert ran.code == 0
    assert lines[0].endswith("INCOMPLETE (something that belonged here is missing, in acl, img)")
    assert [line.split() for line in lines[1:]] == [
        ["cart", "key", "user", "7", "version", "12"],
        ["cart", "key", "user", "7", "version", "3", "epoch", "e1"],
        ["img", "hashed", "key", hashed_key(b"a private name")[1:].decode(), "mark", "m"],
        ["img", "key", "cat.jpg", "mark", "3sL4"],
    ]


@pytest.mark.parametrize(
    "given_text",
    [
        f"baggage: a=b,antipode={EXAMPLE};prop=1, c=d",
        f"Baggage: a=b , antipode = {EXAMPLE}",
        f"a=b,antipode={EXAMPLE}",
        f"antipode={EXAMPLE.replace('~', '%7E')}",
        f"antipode-lineage: {EXAMPLE}",
        f"> antipode-lineage:{EXAMPLE.replace('~', '%7e')}",
        f"antipode_lineage: {EXAMPLE}",
        f"uberctx-antipode: {EXAMPLE}",
        f"  {EXAMPLE} \n",
        f"{EXAMPLE};prop=1",
        f"{EXAMPLE}, {EXAMPLE}",
    ],
)
def test_inspect_finds_the_lineage_in_header_lines(run: Run, given_text: str) -> None:
    ran = run("inspect", given_text)
    assert ran.code == 0
    assert ran.out.splitlines()[1:] == [
        "  blog-acl    position 57    epoch 0-1",
        "  blog-posts  position 1042  epoch 8371ab90c2d4e6f1",
    ]


def test_inspect_reads_standard_input_and_joins_several(run: Run) -> None:
    dump = (
        b"> GET / HTTP/1.1\n> Host: b:80\n> baggage: user=7,antipode=1~s..e.1~t.k..2\n>\n< antipode-lineage: 1~s..e.5\n"
    )
    assert run("inspect", "-", stdin=dump) == Ran(
        0,
        "lineage, 15 bytes, complete\n"
        "  s  position 1  epoch e\n"
        "  t  key k       version 2\n"
        "lineage, 8 bytes, complete\n"
        "  s  position 5  epoch e\n"
        "joined, 15 bytes, complete\n"
        "  s  position 5  epoch e\n"
        "  t  key k       version 2\n",
        "",
    )


def test_inspect_says_the_empty_lineage(run: Run) -> None:
    assert run("inspect", "1") == Ran(0, "lineage, 1 byte, complete: no writes\n", "")


def test_inspect_shows_a_seal_without_believing_it_and_unknown_extensions(run: Run) -> None:
    keys = Keys({"k1": b"0123456789abcdef"})
    ran = run("inspect", seal.seal("1~s..e.1~_.x9.new", keys, 0, 1))
    assert "sealed with the key k1, expired 1970-01-01 00:00:01 UTC; not verified here" in ran.out
    assert "extension x9.new (not known here; carried on)" in ran.out


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("foo", "begins with 'foo'"),
        ("2~s..e.1", "begins with '2'"),
        ("1~s..e.05", "'s..e.05'"),
        ("1~s..e.18446744073709551616", "'s..e.18446744073709551616'"),
        ("1~s..e.1~", "''"),
        ("1~s..e.1~s..f.1", "stands twice"),
        ("1~_.i~s..e.1", "not a lineage"),
        ("1~" + "s" * 5000, "5002 bytes"),
        ("", "no lineage in an empty text"),
        ("Host: example", "no lineage in Host"),
        ("baggage: a=b", "no lineage in baggage"),
        ("antipode-lineage:", "is empty"),
        ("1~\x1b[31mred..e.1", r"\x1b[31mred"),
        ("\udcff", r"\xff"),
    ],
)
def test_inspect_says_what_is_malformed_in_a_sentence(run: Run, text: str, word: str) -> None:
    ran = run("inspect", text)
    assert ran.code == 2
    assert ran.out == ""
    assert word in ran.err
    assert ran.err.startswith("antipode: ")
    assert ran.err.count("\n") == 1
    assert "\x1b" not in ran.err


def test_inspect_shows_what_it_can_read_beside_what_it_cannot(run: Run) -> None:
    ran = run("inspect", "-", stdin=b"antipode-lineage: 1~s..e.1\nantipode-lineage: 1~s..e.x\n")
    assert ran.code == 2
    assert "position 1" in ran.out
    assert "'s..e.x'" in ran.err


def test_inspect_prints_json_that_keeps_every_octet_and_digit(run: Run) -> None:
    lineage = Lineage(
        [
            WriteId.position("s", "e", 2**64 - 1),
            WriteId("t", b"\xff\x00", Opaque("m")),
            WriteId("u", "é", Ordered("", 1)),
        ]
    ).marked_incomplete("t")
    ran = run("inspect", "--json", lineage.serialize())
    assert ran.code == 0
    assert json.loads(ran.out) == {
        "lineages": [
            {
                "text": lineage.serialize(),
                "bytes": len(lineage.serialize()),
                "complete": False,
                "incomplete": ["t"],
                "incomplete_anywhere": False,
                "writes": [
                    {"store": "s", "kind": "position", "epoch": "e", "counter": "18446744073709551615"},
                    {"store": "t", "kind": "opaque", "mark": "m", "key": "�\x00", "key_hex": "ff00"},
                    {"store": "u", "kind": "object", "epoch": "", "counter": "1", "key": "é", "key_hex": "c3a9"},
                ],
            }
        ],
        "malformed": [],
    }


def test_a_terminal_obeys_nothing_of_what_is_shown(run: Run) -> None:
    lineage = Lineage([WriteId("s\x1b[2J", b"\x1b]0;x\x07\xff\\", Opaque("m\r\n")), WriteId.position("t", "\u202e", 1)])
    ran = run("inspect", lineage.serialize())
    assert ran.code == 0
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(ran.out)
    assert r"s\x1b[2J" in ran.out
    assert r"key \x1b]0;x\x07\xff\\" in ran.out
    assert r"mark m\r\n" in ran.out


@given(st.text(max_size=60) | st.text(alphabet="1~._aBi-:=,;%0 \n", max_size=40))
def test_inspect_never_ends_with_a_traceback(text: str) -> None:
    out = io.StringIO()
    before = sys.argv, sys.stdin, sys.stdout, sys.stderr
    sys.argv = ["antipode", "inspect", "--", text if text != "-" else ""]
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO()), out, out
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
    finally:
        sys.argv, sys.stdin, sys.stdout, sys.stderr = before
    assert ended.value.code in {0, 2}
    assert "failed:" not in out.getvalue()
    assert "Traceback" not in out.getvalue()


# version


def test_version_says_every_setting_and_where_it_came_from(
    run: Run, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONF-8."""
    keys = tmp_path / "keys"
    keys.write_text("k1 MDEyMzQ1Njc4OWFiY2RlZg==\n")
    for name, value in {
        "ANTIPODE_TIMEOUT_MS": "250",
        "ANTIPODE_KEYS_FILE": str(keys),
        "ANTIPODE_STORES": "blog-posts, user-acl",
        "ANTIPODE_STORE_BLOG_POSTS_TIMEOUT_MS": "80",
        "ANTIPODE_STORE_BLOG_POSTS_MODE": "dry-run",
        "ANTIPODE_TIMOUT_MS": "9",
        "ANTIPODE_LAB": "lab.json",
    }.items():
        monkeypatch.setenv(name, value)
    ran = run("version")
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split(maxsplit=1) for line in ran.out.splitlines()]
    told = {words[0]: " ".join(words[1].split()) for words in lines if len(words) == 2}
    assert told["antipode"].startswith("0.1.0, wire form 1, Python 3.")
    assert told["memory"].startswith("antipode-sdk 0.1.0")
    assert told["filekv"] == "filekv 3.1 filekv:// filekvs://"
    assert told["broken"].startswith("filekv 3.1 CANNOT BE USED: ModuleNotFoundError")
    assert told["ANTIPODE_TIMEOUT_MS"] == "250 ms environment (ANTIPODE_TIMEOUT_MS)"
    assert told["ANTIPODE_STORES"] == "blog-posts, user-acl environment (ANTIPODE_STORES)"
    assert told["ANTIPODE_TRUST"] == "key keys are set"
    assert told["configure(keys=…)"] == "k1 environment (ANTIPODE_KEYS_FILE)"
    assert told["ANTIPODE_EDGE"] == "false default"
    assert told["ANTIPODE_STORE_BLOG_POSTS_TIMEOUT_MS"] == "80 ms"
    assert told["ANTIPODE_STORE_BLOG_POSTS_MODE"] == "dry-run"
    assert told["ANTIPODE_TIMOUT_MS"] == "is not known. Did you mean ANTIPODE_TIMEOUT_MS?"
    assert "ANTIPODE_LAB" not in told
    assert "MDEyMzQ1" not in ran.out


def test_version_says_which_setting_cannot_be_read(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPODE_TIMEOUT_MS", "soon")
    ran = run("version")
    assert ran.code == 2
    assert "wire form 1" in ran.out
    assert "ANTIPODE_TIMEOUT_MS='soon'" in ran.err


# The script itself


@pytest.mark.parametrize("words", [[], ["--help"], ["epoch"], ["nosuch"], ["inspect"], ["doctor"]])
def test_help_and_mistakes_end_in_words(run: Run, words: list[str]) -> None:
    ran = run(*words)
    assert ran.code == (0 if words == ["--help"] else 2)
    assert "Usage: antipode" in ran.out + ran.err


def test_the_installed_script_works_in_a_pipe(package: Path) -> None:
    script = Path(sys.executable).with_name("antipode")
    environment = {**os.environ, "PYTHONPATH": str(package.parent / "site"), "NO_COLOR": "1"}
    ran = subprocess.run(
        [script, "inspect", "-"],
        input=EXAMPLE,
        env=environment,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[1] == "  blog-acl    position 57    epoch 0-1"
    # Its reader has gone: no traceback.
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [script, "version"], stdout=writer, stderr=subprocess.PIPE, env=environment, text=True, timeout=60, check=False
    )
    os.close(writer)
    assert "Traceback" not in ran.stderr
