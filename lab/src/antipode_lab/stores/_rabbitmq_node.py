"""How a RabbitMQ broker is configured and started: all in the scratch folder, all on loopback."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LAUNCHER = "/usr/lib/rabbitmq/bin/rabbitmq-server"
"""The server's own script: the one in /usr/sbin changes to the user rabbitmq first."""

PUBLISHER = "publisher"
"""A user that may publish and read nothing, with this password too."""

# Two schedulers without busy waiting: brokers that idle must not take the machine from what is measured.
_ERLANG = "+S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none +A 4 +SDio 2"
_ERLANG += " -kernel inet_dist_use_interface {127,0,0,1}"


def upstream_queue(exchange: str, cluster: str, vhost_a: str, vhost_b: str) -> str:
    """The name of the queue in which region A keeps what the federation link is to carry to region B."""
    part = cluster if vhost_a == vhost_b else f"{cluster}:{vhost_b}:{exchange}"
    return f"federation: {exchange} -> {part}"


def definitions(
    *,
    cluster: str,
    vhosts: list[str],
    exchanges: Mapping[str, str],
    queues: Mapping[str, str],
    federated: str | None,
    upstream: str | None,
) -> dict[str, Any]:
    """A broker's definitions file.

    Args:
        cluster: the broker's name in federation.
        vhosts: its virtual hosts; each gets the exchanges.
        exchanges: name to type.
        queues: name to exchange; only in the federated virtual host, where the consumers are.
        federated: the virtual host whose exchanges fetch from the upstream.
        upstream: the upstream's URI, through the link's proxy.
    """
    found: dict[str, Any] = {
        "users": [
            {"name": "guest", "password": "guest", "tags": ["administrator"]},
            {"name": PUBLISHER, "password": PUBLISHER, "tags": []},
        ],
        "vhosts": [{"name": vhost} for vhost in vhosts],
        "permissions": [
            {"user": user, "vhost": vhost, "configure": ".*", "write": ".*", "read": read}
            for vhost in vhosts
            for user, read in (("guest", ".*"), (PUBLISHER, "^$"))
        ],
        "global_parameters": [{"name": "cluster_name", "value": cluster}],
        "exchanges": [
            {
                "vhost": vhost,
                "name": name,
                "type": kind,
                "durable": True,
                "auto_delete": False,
                "internal": False,
                "arguments": {},
            }
            for vhost in vhosts
            for name, kind in exchanges.items()
        ],
    }
    if federated is not None:
        found["queues"] = [
            {"vhost": federated, "name": name, "durable": True, "auto_delete": False, "arguments": {}}
            for name in queues
        ]
        found["bindings"] = [
            {
                "vhost": federated,
                "source": exchange,
                "destination": name,
                "destination_type": "queue",
                "routing_key": "#" if exchanges.get(exchange) == "topic" else name,
                "arguments": {},
            }
            for name, exchange in queues.items()
        ]
        found["parameters"] = [
            {
                "vhost": federated,
                "component": "federation-upstream",
                "name": "region-a",
                "value": {
                    "uri": upstream,
                    "ack-mode": "on-confirm",
                    "reconnect-delay": 1,
                    "max-hops": 1,
                },
            }
        ]
        # Every exchange of the application, also those that it declares later.
        found["policies"] = [
            {
                "vhost": federated,
                "name": "antipode-lab",
                "pattern": r"^(?!amq\.).+",
                "apply-to": "exchanges",
                "priority": 0,
                "definition": {"federation-upstream": "region-a"},
            }
        ]
    return found


def write_files(folder: Path, port: int, wanted: Mapping[str, Any]) -> None:
    """Writes a broker's configuration into its folder."""
    (folder / "home").mkdir(parents=True, exist_ok=True)
    (folder / "definitions.json").write_text(json.dumps(wanted, indent=1))
    # On both ends: an upstream without the plugin does not know the link's exchange type.
    (folder / "enabled_plugins").write_text("[rabbitmq_federation].\n")
    settings = {
        "listeners.tcp.1": f"127.0.0.1:{port}",
        "load_definitions": str(folder / "definitions.json"),
        "vm_memory_high_watermark.absolute": "256MB",
        "disk_free_limit.absolute": "50MB",
        "log.console": "false",
        "log.file.level": "warning",
    }
    (folder / "rabbitmq.conf").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))


def environment(folder: Path, *, node: str, port: int, dist_port: int, epmd_port: int) -> dict[str, str]:
    """A broker's environment: none of its paths is left at the system's."""
    inherited = {key: os.environ[key] for key in ("PATH", "LANG", "TMPDIR") if key in os.environ}
    return {
        **inherited,
        "HOME": str(folder / "home"),
        "RUNNING_UNDER_SYSTEMD": "true",  # the script then becomes the server, in place of waiting for it
        "ERL_EPMD_PORT": str(epmd_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"{node}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(dist_port),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "none"),
        "RABBITMQ_CONF_ENV_FILE": "/dev/null",
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(folder / "generated"),
        "RABBITMQ_FEATURE_FLAGS_FILE": str(folder / "feature_flags"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _ERLANG,
    }
