"""What a Redis command may do to data: the write flags of `COMMAND` (Redis 7.0), as a table.

Asking each server at run time would cost a request and a right. Commands that are not in the table (newer ones,
modules) may write.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, Final


class Kind(Enum):
    """What a command may do."""

    OTHER = 0
    """Neither reads nor writes data: it is passed on untouched."""
    READ = 1
    """Reads data and changes nothing."""
    WRITE = 2
    """Flagged as a write: an error reply says that nothing was changed."""
    MAYBE = 3
    """A script, a module's or an unknown command: may write, also where it ends with an error."""
    TRANSACTION = 4
    """MULTI, EXEC, DISCARD, sent by hand, and RESET, which discards, too."""


_READS: Final = """
    BITCOUNT BITFIELD_RO BITPOS DBSIZE DUMP EVALSHA_RO EVAL_RO EXISTS EXPIRETIME FCALL_RO GEODIST GEOHASH GEOPOS
    GEORADIUSBYMEMBER_RO GEORADIUS_RO GEOSEARCH GET GETBIT GETRANGE HEXISTS HGET HGETALL HKEYS HLEN HMGET HRANDFIELD
    HSCAN HSTRLEN HVALS KEYS LCS LINDEX LLEN LPOS LRANGE MGET OBJECT PEXPIRETIME PFCOUNT PTTL RANDOMKEY SCAN SCARD
    SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER SORT_RO SRANDMEMBER SSCAN STRLEN SUBSTR SUNION TOUCH TTL
    TYPE XINFO XLEN XPENDING XRANGE XREAD XREVRANGE ZCARD ZCOUNT ZDIFF ZINTER ZINTERCARD ZLEXCOUNT ZMSCORE
    ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN
    ZSCORE ZUNION
    HTTL HPTTL HEXPIRETIME HPEXPIRETIME
    JSON.GET JSON.MGET JSON.TYPE JSON.STRLEN JSON.ARRLEN JSON.ARRINDEX JSON.OBJKEYS JSON.OBJLEN JSON.RESP
    FT.SEARCH FT.AGGREGATE FT.INFO FT.EXPLAIN FT.PROFILE TS.GET TS.MGET TS.RANGE TS.REVRANGE TS.MRANGE TS.INFO
    BF.EXISTS BF.MEXISTS BF.INFO BF.CARD CF.EXISTS CF.MEXISTS CF.COUNT CF.INFO CMS.QUERY CMS.INFO TOPK.QUERY TOPK.LIST
"""
# PFCOUNT is flagged readonly though it may store a cached cardinality: no reader can tell the difference.

_WRITES: Final = """
    APPEND BITFIELD BITOP BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN COPY DECR DECRBY DEL EXPIRE
    EXPIREAT FLUSHALL FLUSHDB GEOADD GEOSEARCHSTORE GETDEL GETEX GETSET HDEL HINCRBY HINCRBYFLOAT HMSET HSET HSETNX
    INCR INCRBY INCRBYFLOAT LINSERT LMOVE LMPOP LPOP LPUSH LPUSHX LREM LSET LTRIM MOVE MSET MSETNX PERSIST PEXPIRE
    PEXPIREAT PFADD PFMERGE PSETEX RENAME RENAMENX RESTORE RESTORE-ASKING RPOP RPOPLPUSH RPUSH RPUSHX SADD
    SDIFFSTORE SET SETBIT SETEX SETNX SETRANGE SINTERSTORE SMOVE SPOP SREM SUNIONSTORE SWAPDB UNLINK XACK XADD
    XAUTOCLAIM XCLAIM XDEL XREADGROUP XSETID XTRIM ZADD ZDIFFSTORE ZINCRBY ZINTERSTORE ZMPOP ZPOPMAX ZPOPMIN
    ZRANGESTORE ZREM ZREMRANGEBYLEX ZREMRANGEBYRANK ZREMRANGEBYSCORE ZUNIONSTORE
"""

ANSWERING: Final = frozenset(
    """
    BITFIELD BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN DECR DECRBY GETDEL GETEX GETSET HINCRBY
    HINCRBYFLOAT INCR INCRBY INCRBYFLOAT LMOVE LMPOP LPOP RPOP RPOPLPUSH SETBIT SPOP XAUTOCLAIM XCLAIM XREADGROUP
    ZINCRBY ZMPOP ZPOPMAX ZPOPMIN
    """.split()  # noqa: SIM905
)
"""Writes whose reply holds data."""

_OTHERS: Final = """
    ACL ASKING AUTH BGREWRITEAOF BGSAVE CLIENT COMMAND CONFIG ECHO FAILOVER HELLO INFO LASTSAVE LATENCY LOLWUT MODULE
    MONITOR PFSELFTEST PING PSUBSCRIBE PSYNC PUBLISH PUBSUB PUNSUBSCRIBE QUIT READONLY READWRITE REPLCONF REPLICAOF
    ROLE SAVE SCRIPT SELECT SENTINEL SHUTDOWN SLAVEOF SLOWLOG SPUBLISH SSUBSCRIBE SUBSCRIBE SUNSUBSCRIBE SYNC TIME
    UNSUBSCRIBE UNWATCH WAIT WAITAOF WATCH
"""
# They speak of the server, of connections and messages, or of what was sent (MONITOR, SLOWLOG), not of what keys hold.
# REPLICAOF and FAILOVER change which history the server has: its epoch says so. SYNC and PSYNC are a replica's.

_STORES: Final = frozenset({"SORT", "GEORADIUS", "GEORADIUSBYMEMBER"})
"""Flagged as writes, and reads unless they have one of these words."""
_STORE_WORDS: Final = frozenset({"STORE", "STOREDIST"})
_BY_WORD: Final = {
    "CLUSTER": ({"COUNTKEYSINSLOT": Kind.READ, "GETKEYSINSLOT": Kind.READ}, Kind.OTHER),
    "FUNCTION": (
        {"DUMP": Kind.READ, "LIST": Kind.READ} | dict.fromkeys(("HELP", "KILL", "STATS"), Kind.OTHER),
        Kind.WRITE,
    ),
    "MEMORY": ({"USAGE": Kind.READ}, Kind.OTHER),
    "XGROUP": ({"HELP": Kind.OTHER}, Kind.WRITE),
}
"""Of commands whose second word decides: what they may do by it, and with any other one."""

KINDS: Final[dict[Any, Kind]] = (
    dict.fromkeys(_READS.split(), Kind.READ)
    | dict.fromkeys(_WRITES.split(), Kind.WRITE)
    | dict.fromkeys(_OTHERS.split(), Kind.OTHER)
    | dict.fromkeys(("MULTI", "EXEC", "DISCARD", "RESET"), Kind.TRANSACTION)
)
"""Kinds by the command's name, in the spelling that redis-py uses."""


def classify(args: Sequence[Any]) -> Kind:
    """What a command with these arguments, as given to `execute_command`, may do."""
    kind = KINDS.get(args[0])
    if kind is not None:
        return kind
    words = _words(args[0])
    if words[0] in _STORES:
        given = {word for word in map(_spelled, args[1:]) if word in _STORE_WORDS}
        return Kind.WRITE if given else Kind.READ
    if words[0] in _BY_WORD:
        known, other = _BY_WORD[words[0]]
        return known.get(words[1] if len(words) > 1 else _spelled(args[1]) if len(args) > 1 else "", other)
    return KINDS.get(words[0], Kind.MAYBE)


def answers(args: Sequence[Any]) -> bool:
    """Return whether the reply may hold data, of a command that may write; what is unsure does (SHIM-44)."""
    name = command_name(args)
    if name == "SET":
        return any(_spelled(word) == "GET" for word in args[3:])
    return name in ANSWERING or classify(args) is Kind.MAYBE


def command_name(args: Sequence[Any]) -> str:
    """The command's first word in capitals."""
    return _words(args[0])[0]


def blocks(args: Sequence[Any]) -> bool:
    """Whether a read may block at the server (`XREAD … BLOCK`)."""
    return command_name(args) == "XREAD" and any(_spelled(word) == "BLOCK" for word in args[1:4])


@lru_cache(maxsize=512)
def _words(name: Any) -> tuple[str, ...]:
    return tuple(_spelled(name).split()) or ("",)


def _spelled(word: Any) -> str:
    if isinstance(word, str):
        return word.upper()
    if isinstance(word, bytes):
        return word.decode("latin-1").upper()
    return ""
