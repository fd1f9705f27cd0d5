"""SQLAlchemy's sessions over a hooked engine: what they have not flushed is pending (spec SCOPE-27)."""

from __future__ import annotations

import antipode
import pytest
import sqlalchemy
from sql_regions import Posts
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

MARKED = "1~_.i.blog-posts"


class Base(DeclarativeBase):
    pass


class Node(Base):
    __tablename__ = "nodes"
    key: Mapped[int] = mapped_column(primary_key=True)
    value: Mapped[str] = mapped_column(sqlalchemy.String(20), default="")


@pytest.mark.parametrize("driver", ["pymysql", "mysqlconnector"])
def test_a_change_is_pending_until_it_is_committed(any_posts: Posts, driver: str) -> None:
    """SCOPE-27."""
    engine = sqlalchemy.create_engine(any_posts.lab.url("a").replace("mysql://", f"mysql+{driver}://"))
    Base.metadata.drop_all(engine)
    Base.metadata.create_all(engine)
    any_posts.wrap(engine)
    try:
        with antipode.scope() as scope, Session(engine) as session:
            assert session.get(Node, 1) is None
            assert antipode.serialize() == "1"
            session.add(Node(key=1))
            assert antipode.serialize() == MARKED
            session.rollback()
            assert antipode.serialize() == "1"
            node = Node(key=1)
            session.add(node)
            session.commit()
            assert scope.lineage
            assert not scope.lineage.incomplete
        with antipode.scope(), Session(engine.execution_options(a=1)) as session:
            node = session.get_one(Node, 1)
            node.value = "changed"
            assert antipode.serialize() == MARKED
    finally:
        engine.dispose()
