"""The Compose form of the regions: valid by the specification, and of the native lab's topology. No engine is asked."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import random
import re
import socket
import subprocess
import xml.etree.ElementTree as ET
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from antipode_lab import Lab
from antipode_lab import stores as native
from antipode_lab.docker import LABEL, _store
from antipode_lab.stores import _rabbitmq_node as node
from antipode_lab.stores.activemq import PROBE_QUEUE, ActiveMqOptions
from antipode_lab.stores.rabbitmq import PROBE_EXCHANGE, RabbitOptions
from compose_model import DOCKER, FILE, load, proxies, services

STORES = tuple(name for name in native.names() if name != "mongod")
"""In containers `mongodb` is a real mongod; natively that is a store of its own, for there may be no binary."""
ONE_SHOT = {"mongodb-initiate", "s3-replicate"}
BETWEEN = {"toxiproxy", "jaeger"}
"""What both regions reach."""
BACK = {"mongodb-a-from-b1"}
"""Links that the native lab has not: the members of a real replica set connect to each other both ways."""


def test_it_is_valid_by_the_specification(tmp_path: Path) -> None:
    assert services()
    text = FILE.read_text()
    for bad in (text.replace("profiles:", "profilez:"), text.replace("condition: service_healthy", "condition: happy")):
        broken = tmp_path / "compose.yaml"
        broken.write_text(bad)
        assert load(broken).returncode != 0, "the loader must be able to refuse"


def test_what_it_names_is_there_and_starts_with_it() -> None:
    for name, service in services().items():
        for needed in service.get("depends_on", {}):
            assert needed in services(), f"{name} needs {needed}"
            theirs = set(services()[needed].get("profiles", []))
            assert not theirs or set(service["profiles"]) <= theirs, (
                f"{needed} does not start with each profile of {name}"
            )
        for volume in service.get("volumes", []):
            assert Path(volume["source"]).is_file(), f"{name}: {volume['source']}"
            assert volume["read_only"]
        if "build" in service:
            context = Path(service["build"]["context"])
            dockerfile = context / service["build"]["dockerfile"]
            for line in dockerfile.read_text().splitlines():
                if line.startswith("COPY"):
                    for source in line.split()[1:-1]:
                        assert (context / source).exists(), f"{dockerfile}: {source}"


def test_images_are_pinned_and_nothing_is_published_but_on_loopback() -> None:
    for name, service in services().items():
        tag = service["image"].rpartition(":")[2]
        assert re.search(r"\d+\.\d+\.\d+|\d+\.\d+$|RELEASE\.20", tag), f"{name}: {service['image']}"
        for port in service.get("ports", []):
            assert port["host_ip"] == "127.0.0.1", name
        assert "container_name" not in service, "several projects may run side by side"
    for file in DOCKER.rglob("Dockerfile"):
        for line in file.read_text().splitlines():
            if line.startswith("FROM"):
                assert re.search(r":\d+\.\d+\.\d+", line), f"{file}: {line}"


def test_a_profile_a_store_with_health_checks() -> None:
    for kind in STORES:
        servers = _store(kind, services()).servers
        for name in servers:
            service = services()[f"{kind}-{name}"]
            assert kind in service["profiles"]
            assert service["healthcheck"]["test"]
            assert [port["target"] for port in service["ports"]] == [int(service["labels"][f"{LABEL}port"])]


def test_a_service_is_healthy_when_it_is_done() -> None:
    """`docker compose up --wait` takes a container that has ended for a failure, unless somebody waits for its end."""
    awaited = {
        name
        for service in services().values()
        for name, how in (service.get("depends_on") or {}).items()
        if how["condition"] == "service_completed_successfully"
    }
    without = {name for name, service in services().items() if not service.get("healthcheck")}
    assert without - awaited == {"jaeger", "toxiproxy"}, "those run on without one"


def test_only_toxiproxy_joins_the_regions() -> None:
    for name, service in services().items():
        regions = set(service["networks"])
        assert regions <= {"region-a", "region-b"}
        assert len(regions) == (2 if name in BETWEEN else 1), name
    listens = [proxy["listen"].rpartition(":")[2] for proxy in proxies().values()]
    assert len(set(listens)) == len(listens)
    for name, proxy in proxies().items():
        host, _, port = proxy["upstream"].rpartition(":")
        service = host.removesuffix("-itself")
        assert service in services(), f"{name} leads to {host}"
        if host != service:
            aliases = [
                alias for net in services()[service]["networks"].values() for alias in (net or {}).get("aliases", [])
            ]
            assert host in aliases
        assert port.isdecimal()


def test_who_uses_a_link_uses_its_own() -> None:
    """`toxiproxy:PORT` in the file, and in what it mounts, is the port of a link of that very store."""
    used: dict[int, set[str]] = {}
    for name, service in services().items():
        kind = name.split("-")[0]
        texts = [json.dumps(service)]
        texts += [Path(volume["source"]).read_text() for volume in service.get("volumes", [])]
        for text in texts:
            flat = text.replace('", "', ":")
            for found in re.findall(r"toxiproxy(?::|' *, *\w+ = | -p )(\d{5})", flat):
                used.setdefault(int(found), set()).add(kind)
    ports = {int(proxy["listen"].rpartition(":")[2]): name.split("-")[0] for name, proxy in proxies().items()}
    for port, kinds in used.items():
        if kinds != {"toxiproxy"}:
            assert kinds - {"toxiproxy"} == {ports[port]}, f"{port}: {kinds}"
    unused = {kind for port, kind in ports.items() if port not in used}
    assert unused <= {"mongodb"}, "its members find each other by the proxy's names in the networks"


@pytest.mark.servers
@pytest.mark.parametrize("kind", STORES)
def test_it_agrees_with_the_native_lab(kind: str) -> None:
    """Servers, regions, roles, sources, links, and how clients reach them."""
    ours = _store(kind, services())
    with Lab(kind, lag="1ms", queue_lag="1ms") as lab:
        theirs = lab.endpoints.stores[kind]
    assert ours.servers.keys() == theirs.servers.keys()
    for name, server in theirs.servers.items():
        mine = ours.servers[name]
        assert (mine.region, mine.role, mine.source) == (server.region, server.role, server.source), name
        assert ours.details["urls"][name] == server.url.replace(f":{server.port}", ":{port}"), name
    links = {name for name in proxies() if name.startswith(f"{kind}-")} - BACK
    assert links == {link.proxy for link in theirs.links.values()}


def test_every_store_of_the_lab_is_there() -> None:
    kinds = {service["labels"][f"{LABEL}store"] for service in services().values() if service.get("labels")}
    assert kinds == set(STORES)


def test_rabbitmq_has_the_native_labs_definitions() -> None:
    options = RabbitOptions()
    upstream = f"amqp://guest:guest@toxiproxy:{proxies()['rabbitmq-b-from-a']['listen'].rpartition(':')[2]}/%2F"
    for region in ("a", "b"):
        wanted = node.definitions(
            cluster=f"region-{region}",
            vhosts=["/"],
            exchanges={**options.exchanges, PROBE_EXCHANGE: "fanout"},
            queues=options.queues,
            federated="/" if region == "b" else None,
            upstream=upstream if region == "b" else None,
        )
        assert json.loads((DOCKER / "rabbitmq" / f"{region}.json").read_text()) == wanted


def test_activemq_has_the_native_labs_destinations() -> None:
    options = ActiveMqOptions()
    core = "{http://activemq.apache.org/schema/core}"
    a, b = (ET.parse(DOCKER / "activemq" / f"{region}.xml").getroot() for region in "ab")
    crossing = {each.get("physicalName") for each in a.iter(f"{core}queue")}
    assert crossing == {PROBE_QUEUE, *(f"wan.{name}" for name in (*options.queues, *options.topics))}
    connector = a.find(f".//{core}staticallyIncludedDestinations")
    assert connector is not None
    assert [each.get("physicalName") for each in connector.findall(f"{core}topic")] == list(options.plain_topics)
    excluded = a.find(f".//{core}excludedDestinations/{core}topic")
    assert excluded is not None
    assert excluded.get("physicalName") == "antipode.tap.>"
    for composite in b.iter(f"{core}compositeQueue"):
        name = str(composite.get("name")).removeprefix("wan.")
        targets = [each.get("physicalName") for each in composite.find(f"{core}forwardTo") or ()]
        assert targets == [name, f"antipode.tap.{name}"], "the tap last"
        assert composite.get("forwardOnly") == "true"
    broker = a.find(f"{core}broker")
    assert broker is not None
    order = [child.tag.removeprefix(core) for child in broker]
    assert order == sorted(order), "activemq.xml wants its elements in the order of their names"
    for first, second in pairwise((a, b)):
        keep = f".//{core}fixedCountSubscriptionRecoveryPolicy"
        assert [each.get("maximumSize") for each in (first.find(keep), second.find(keep)) if each is not None] == [
            str(options.remember)
        ] * 2


@pytest.mark.parametrize("script", sorted(DOCKER.rglob("*.sh")), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_scripts_can_be_read_by_a_shell(script: Path) -> None:
    assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0


def region() -> ModuleType:
    spec = importlib.util.spec_from_file_location("region", DOCKER / "lab" / "region.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_labs_own_programs_get_what_they_read() -> None:
    """The commands of the services, as `region.py` understands them."""
    for name, keys in (
        ("dynamodb-replicator-a", {"name", "endpoint", "region", "key", "listen", "sources", "clock_ms"}),
        ("sns-a", {"region", "port", "links"}),
    ):
        program, config, port, ways = region().plan(services()[name]["command"])
        assert config.keys() == keys
        stores = Path(native.__file__).parent
        text = (stores / program).read_text()
        for key in keys:
            assert f'config["{key}"]' in text or f'"{key}"' in text, f"{program} reads no {key}"
        assert [target[0] for _, target in ways] == ["toxiproxy"]
        peers = [str(proxy["upstream"]) for proxy in proxies().values()]
        service = name if name.startswith("sns") else "dynamodb-replicator-a"
        assert f"{service}:{port}" in peers


def test_a_program_that_does_not_listen_yet_is_not_healthy() -> None:
    """The way to it takes connections before it does: its own port is asked."""
    with ExitStack() as stack:
        while True:
            way, program = (stack.enter_context(socket.socket()) for _ in range(2))
            port = random.randrange(10_000, 14_000)
            with suppress(OSError):
                way.bind(("127.0.0.1", port))
                program.bind(("127.0.0.1", port + 1000))
                break
        way.listen()
        with pytest.raises(ConnectionRefusedError):
            region().main(["answers", str(port)])
        program.listen()
        region().main(["answers", str(port)])


async def test_ways_carry_octets_both_ways_and_close() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"<" + await reader.readexactly(5) + b">")
        await writer.drain()
        writer.close()

    far = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = far.sockets[0].getsockname()[1]
    way: Any = await region().forward(("127.0.0.1", 0), ("127.0.0.1", port))
    reader, writer = await asyncio.open_connection(*way.sockets[0].getsockname())
    writer.write(b"hello")
    assert await asyncio.wait_for(reader.read(), 10) == b"<hello>"
    far.close()
    reader, writer = await asyncio.open_connection(*way.sockets[0].getsockname())
    assert await asyncio.wait_for(reader.read(), 10) == b"", "nobody is there: closed, not held"
    way.close()


@pytest.mark.servers
@pytest.mark.parametrize("kind", ["mariadb", "mysql"])
def test_servers_take_the_statements_that_make_replicas(kind: str, lab_factory: Any) -> None:
    """On a server of the native lab, which then reads from its own lab's link in the place of Toxiproxy's container."""
    store = lab_factory(kind, lag="1ms")[kind]
    link = store.link("b1", "a")
    text = "\n".join(line for line in (DOCKER / kind / "b1.sql").read_text().splitlines() if not line.startswith("--"))
    port = proxies()[f"{kind}-b1-from-a"]["listen"].rpartition(":")[2]
    assert port in text
    text = text.replace(port, str(link.port)).replace("'toxiproxy'", "'127.0.0.1'")
    store.run("b1", store.stop_replica)
    for statement in text.split(";"):
        if statement.strip():
            store.run("b1", statement.strip())
    made = (DOCKER / kind / "a.sql").read_text()
    assert "CREATE USER 'lab_replication'@'%' IDENTIFIED BY 'lab-replication'" in made
    assert "CREATE DATABASE IF NOT EXISTS lab" in made
