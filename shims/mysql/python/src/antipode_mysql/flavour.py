"""What differs between MariaDB and MySQL: what is asked, and what the answers prove. The rest knows neither."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from antipode import Ordered, WriteId
from antipode.shim import Visibility


class WantedPosition(NamedTuple):
    """What a server's own wait can wait for next."""

    stream: str
    """Whose numbers: MariaDB's domain, MySQL's server uuid, with its tag."""
    number: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server says behind a commit or a read."""

    mark: Hashable
    """The same as before where the session has logged nothing since."""
    last: Ordered | None
    """The session's own newest transaction, where the server tells it."""
    own: tuple[Ordered, ...]
    """What covers a write of this session that was logged, and whose own position is not known."""
    own_is_top: bool
    """Whether nothing greater can have been given in these epochs: a lineage that has it is implausible."""
    log: tuple[Ordered, ...]
    """What covers all that could be read there before it was asked, also what is visible and not in its log's place
    yet (EPOCH-31)."""
    logs: bool
    """Whether this session's writes are logged at all."""
    session: int
    """Whose answer it is."""


class Look(ABC):
    """One look at a server."""

    unfit: str
    """Why nothing can be proved there; empty where it can."""

    @property
    @abstractmethod
    def epoch(self) -> str:
        """The history that the server follows now."""

    @abstractmethod
    def proved(self) -> dict[str, int]:
        """Per epoch, up to where everything is here."""

    @abstractmethod
    def judge(self, write_id: WriteId, is_idle: Callable[[], bool]) -> Visibility:
        """What it proves of one write. `is_idle` asks, after the look, whether the applier is at rest."""

    @abstractmethod
    def waited_for(self, ids: Sequence[WriteId], answers: Sequence[Visibility]) -> WantedPosition | None:
        """What the server has to reach next for any of these writes; None where its own wait cannot tell."""


class Flavour(ABC):
    """A kind of server."""

    name: ClassVar[str]
    question: ClassVar[bytes]
    """Asked behind a commit or a read; its last column is the session's number."""
    look: ClassVar[str]
    """Where the server is; its last column is the session's number."""
    isolation: ClassVar[str]
    """The variable with the isolation of the session's transactions."""
    is_idle: ClassVar[str] = ""
    """Asks how many appliers run; empty where nobody has to know."""
    track: ClassVar[bytes] = b""
    """Has the server tell a commit's id in its own answer; empty where it cannot."""
    unwritten: ClassVar[Hashable] = None
    """The mark of a session that has logged nothing yet; None where nothing shows that."""
    durable: ClassVar[Mapping[str, tuple[str, ...]]]
    """Settings with whose values nothing is lost that the server said that it has, the wise one first (SHIM-45)."""
    cure: ClassVar[str]
    """How such a setting is changed."""
    epoch_words: ClassVar[str]
    """What an epoch looks like, for people."""

    @abstractmethod
    def answer(self, row: Sequence[str]) -> Answer:
        """From the row of the question; raises ValueError for what is no such row."""

    @abstractmethod
    def seen(
        self, row: Sequence[str], unfit: str, marks: Mapping[str, int] | None = None, before: Look | None = None
    ) -> Look:
        """From the row of the look. `before`: the look before this one on the same connection."""

    @abstractmethod
    def wait(self, wanted: WantedPosition, seconds: float) -> str:
        """The server's own wait: answered when it has got so far, or after so many seconds."""

    @abstractmethod
    def settings(self, rows: Callable[[str], Sequence[Mapping[str, Any]]]) -> dict[str, str]:
        """The settings that matter. `rows` asks a question, and gives none where the right to it is missing."""

    @abstractmethod
    def unfit(self, settings: Mapping[str, str]) -> str:
        """Why these settings allow no proof, and what to change; empty where they do."""

    def relaxed(self, settings: Mapping[str, str]) -> str:
        """Return why a crash may take back what such a server says that it has; empty where it may not (SHIM-45)."""
        found = {name: right[0] for name, right in self.durable.items() if settings.get(name) not in right}
        if not found:
            return ""
        cures = ", ".join(self.cure.format(f"{name}={value}") for name, value in found.items())
        return (
            f"it has {', '.join(f'{name}={settings.get(name)}' for name in found)}, so behind a crash it says that it "
            f"has what it lost, and may give its numbers again. {cures}. If every server that crashed is rebuilt "
            "before it serves readers, say so: wrap(…, relaxed_durability=True)"
        )

    @property
    @abstractmethod
    def reuse(self) -> str:
        """Why nothing is proved where the operator has not said that names are used once."""

    @abstractmethod
    def is_epoch(self, epoch: str) -> bool:
        """Whether it can be an epoch of this kind of server."""


def texts(row: Sequence[Any]) -> list[str]:
    """The values of a row, from the wire or from the client."""
    found = [b"" if value is None else value for value in row]
    return [value.decode("ascii", "replace") if isinstance(value, bytes) else str(value) for value in found]


def answer_of(flavour: Flavour, row: Sequence[bytes | None] | None) -> Answer | None:
    """The answer to the flavour's question; None for what is none."""
    try:
        return None if row is None else flavour.answer(texts(row))
    except ValueError:
        return None
