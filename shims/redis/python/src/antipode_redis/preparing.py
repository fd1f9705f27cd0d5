"""What a Redis server needs before its clients are wrapped: `antipode init` (spec SHIM-3, EPOCH-26)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, Final

from antipode import ConfigurationError
from antipode.shim.administration import InitRequest, Step

from antipode_redis import branch_rows, marks
from antipode_redis.probe import RIGHTS
from antipode_redis.session import Session
from antipode_redis.targets import target_of

OPTIONS: Final[Mapping[str, str]] = {
    "marks_key": f"the key of the marks, as wrap() has it ({marks.DEFAULT_KEY})",
    "branches": "yes: also the rights to the rows of branches, for configure(branches=…)",
}
_TIMEOUT_S: Final = 5.0
_NAMELESS: Final = "USER"


def preparations(url: str, wanted: InitRequest) -> Sequence[Step]:
    """The right to read positions and to keep marks; Redis needs no schema. To be done at every server of the store."""
    target_of(url)  # raises where it is no address
    user = wanted.user
    if user is not None and (not user or any(character.isspace() for character in user)):
        raise ConfigurationError(f"{user!r} is no name of a Redis user", code="AP707")
    key = wanted.options.get("marks_key", marks.DEFAULT_KEY)
    if not key or any(character.isspace() for character in key):
        raise ConfigurationError(f"{key!r} is no key of marks: white space cannot stand in a user's rule", code="AP707")
    words = ("ACL", "SETUSER", user or _NAMELESS, *RIGHTS.split(), f"~{key}")
    rows = ("ACL", "SETUSER", user or _NAMELESS, *branch_rows.RIGHTS.split(), f"~{branch_rows.PREFIX}*")
    for_branches = [
        Step(
            "redis-cli",
            " ".join(rows),
            "without it branches can be neither closed nor looked up; at every server, too",
            None if user is None else partial(_grant, url, rows),
        )
    ]
    return [
        Step(
            "redis-cli",
            " ".join(words),
            "without it positions cannot be read or marked: writes are incomplete, waits unproven. Rights are not "
            "replicated: give them at every server of the store",
            None if user is None else partial(_grant, url, words),
        ),
        *(for_branches if wanted.options.get("branches", "") not in ("", "no") else []),
        Step(
            "redis-cli",
            "ACL SAVE",
            "rights given by a command are gone after a restart; for servers without an aclfile: CONFIG REWRITE",
        ),
    ]


def _grant(url: str, words: Sequence[str]) -> str:
    """Adds the rules to a user that is there; one made by SETUSER would be a new login."""
    user, *_, pattern = words[2:]
    with closing(Session(target_of(url), _TIMEOUT_S)) as session:
        before = session.command("ACL", "GETUSER", user)
        if before is None:
            raise ConfigurationError(
                f"there is no user {user}; create it first, with its password and its own rights", code="AP707"
            )
        # Redis refuses a further pattern beside the one of all keys.
        rules = words[3:-1] if _patterns(before) & {b"~*", b"*"} else (*words[3:-1], pattern)
        session.command("ACL", "SETUSER", user, *rules)
        return "there already" if session.command("ACL", "GETUSER", user) == before else "granted"


def _patterns(user: Any) -> set[bytes]:
    """The patterns of keys in the answer of ACL GETUSER: a text in Redis 7, a list before."""
    fields = user if isinstance(user, dict) else dict(zip(user[::2], user[1::2], strict=True))
    keys = fields.get(b"keys", b"")
    return set(keys.split() if isinstance(keys, bytes) else keys)
