"""Values that a program on the way would take for something else, or that no box can mean, are refused."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest
from pydantic import ValidationError
from test_settings import KEY, refused

from ninfer_fleet.settings import Engine, Model, Network, Serve, Settings, Task
from ninfer_fleet.settings.declared import refusals

EIGHTS = [f"{number}.0.0.0/8" for number in (3, 5, 8)]
HALVES = [str(half) for half in ip_network("::/0").subnets(4)]

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"network": {"allowed": ["0.0.0.0/1", "128.0.0.0/1"]}}, "network.allowed", "nearly everybody"),
    ({"network": {"allowed": EIGHTS}}, "network.allowed", "nearly everybody"),
    ({"network": {"allowed": ["8.0.0.0/9", "9.0.0.0/9", "12.0.0.0/16"]}}, "network.allowed", "everybody"),
    ({"network": {"allowed": ["100.64.0.0/10", "::/0"]}}, "network.allowed", "nearly everybody"),
    ({"network": {"allowed": HALVES}}, "network.allowed", "nearly everybody"),
    ({"network": {"allowed": ["2600::/16", "2601::/16"]}}, "network.allowed", "nearly everybody"),
    ({"network": {"allowed": ["::ffff:0:0/96"]}}, "network.allowed", "IPv4 addresses in IPv6 clothes"),
    ({"network": {"allowed": ["::ffff:100.64.0.0/106"]}}, "network.allowed", "IPv4 network itself"),
    ({"network": {"allowed": ["64:ff9b::/96"]}}, "network.allowed", "IPv6 clothes"),
    ({"network": {"allowed": ["2002::/16"]}}, "network.allowed", "IPv6 clothes"),
    ({"network": {"rule_name": "-serve"}}, "network.rule_name", "rule of ours"),
    ({"network": {"rule_name": "CoreNet-In"}}, "network.rule_name", "begin with ninfer-fleet-"),
    ({"network": {"rule_name": "ninfer-fleet-a.replacement"}}, "network.rule_name", "half-made"),
    ({"serve": {"host": "--api-key"}}, "serve.host", "no IP address"),
    ({"serve": {"host": "gpu01"}}, "serve.host", "no IP address"),
    ({"serve": {"host": "localhost"}}, "serve.host", "127.0.0.1"),
    ({"serve": {"host": "fe80::1%3"}}, "serve.host", "can listen on"),
    ({"serve": {"host": "224.0.0.1"}}, "serve.host", "can listen on"),
    ({"serve": {"port": True}}, "serve.port", "switches"),
    ({"serve": {"port": 65536}}, "serve.port", "found 65536; wanted: at most 65535"),
    ({"serve": {"port": "http"}}, "serve.port", "found 'http'; wanted: a whole number"),
    ({"serve": {"temperature": float("nan")}}, "serve.temperature", "wanted: a number"),
    ({"serve": {"controller_draft_tokens": [True]}}, "serve.controller_draft_tokens", "switches"),
    ({"serve": {"kv_capacity": "much"}}, "serve.kv_capacity", "a whole number or 'auto'"),
    ({"serve": {"max_pending_requests": 10**12}}, "serve.max_pending_requests", "at most"),
    ({"serve": {"log_stats_interval_ms": 10**10}}, "serve.log_stats_interval_ms", "at most"),
    ({"serve": {"model_id": "--help"}}, "serve.model_id", "taken for an option"),
    ({"serve": {"model_id": "a b"}}, "serve.model_id", "not one word"),
    ({"serve": {"spec": "eagle"}}, "serve.spec", "wanted: 'mtp' or 'dflash'"),
    ({"serve": {"cors": "perhaps"}}, "serve.cors", "wanted: true or false"),
    ({"serve": 5}, "serve", "wanted: settings of the form"),
    ({"model": {"model_id": "-x"}}, "model.model_id", "taken for an option"),
    ({"model": {"model_id": 'a"b'}}, "model.model_id", "not one word"),
    ({"model": {"target": "-x"}}, "model.target", "taken for an option"),
    ({"model": {"size_bytes": 10**18}}, "model.size_bytes", "at most"),
    ({"model": {"url": "ftp://host/x"}}, "model.url", "begins with https:// or http:// or file://"),
    ({"engine": {"targets": ["-tclean"]}}, "engine.targets.0", "taken for an option"),
    ({"engine": {"targets": []}}, "engine.targets", "at least 1 entries"),
    ({"engine": {"executables": [r"..\cmd.exe"]}}, "engine.executables", "no file name of a program"),
    ({"engine": {"executables": ["bin/ninfer.exe"]}}, "engine.executables", "no file name of a program"),
    ({"engine": {"executables": ["-x.exe"]}}, "engine.executables", "no file name of a program"),
    ({"engine": {"executables": ["nul.exe"]}}, "engine.executables", "device"),
    ({"engine": {"executables": ["ninfer-serve.bat"]}}, "engine.executables", "no file name of a program"),
    ({"engine": {"parallel_jobs": 10**6}}, "engine.parallel_jobs", "at most 1024"),
    ({"engine": {"container_versions": []}}, "engine.container_versions", "at least 1 entries"),
    ({"engine": {"repository": "ssh://-oProxyCommand=x/y"}}, "engine.repository", "names no host"),
    ({"engine": {"vcpkg_triplet": "-x"}}, "engine.vcpkg_triplet", "text that matches"),
    ({"task": {"path": r"\Microsoft\Windows\x"}}, "task.path", "Windows' own tasks"),
    ({"task": {"path": r"\NINFERFLEET\engine-build"}}, "task.path", "this tool's own jobs"),
    ({"task": {"path": r"\a \b"}}, "task.path", "blank"),
    ({"task": {"path": r"\..\b"}}, "task.path", "dot"),
    ({"task": {"account": '"operator"'}}, "task.account", "without quotes"),
    ({"task": {"account": "'operator'"}}, "task.account", "without quotes"),
    ({"task": {"account": "operator\nx"}}, "task.account", r"'\n'"),
    ({"task": {"account": "oper\x07ator"}}, "task.account", "no account name"),
    ({"task": {"account": r"A\B\c"}}, "task.account", "no account name"),
    ({"task": {"account": ""}}, "task.account", "empty"),
    ({"task": {"watchdog_minutes": 10**6}}, "task.watchdog_minutes", "at most 60"),
    ({"task": {"longest_backoff_s": 10**9}}, "task.longest_backoff_s", "at most"),
    ({"task": {"ready_timeout_s": 10**9}}, "task.ready_timeout_s", "at most"),
    ({"gpu": {"index": True}}, "gpu.index", "switches"),
]


@pytest.mark.parametrize(("declared", "where", "words"), REFUSED, ids=repr)
def test_a_value_is_refused_in_one_line_with_its_remedy(
    declared: dict[str, Any], where: str, words: str
) -> None:
    if isinstance(declared.get("serve"), dict) or "serve" not in declared:
        lines = refused(**declared)
    else:
        with pytest.raises(ValidationError) as caught:
            Settings.model_validate(declared)
        lines = refusals(caught.value)
    assert len(lines) == 1
    assert lines[0].startswith(f"{where}: ")
    assert words in lines[0]
    assert "Remedy: " in lines[0]
    for of_pydantic in ("Input should", "Extra inputs", "Field required", "valid "):
        assert of_pydantic not in lines[0]


@pytest.mark.parametrize(
    ("noun", "name"), [(Model, "url"), (Engine, "repository")], ids=["model.url", "engine.repository"]
)
@pytest.mark.parametrize(
    "url",
    [
        "https://user:hunter2@host/x",
        "https://hunter2@host/x",
        "https://user:hun/ter2@host/x",
        "https://user:hunter2 x@host/x",
        "ssh://git:hunter2@host/x",
        "ftp://user:hunter2@host/x",
        "user:hunter2@host/x",
    ],
)
def test_a_login_in_a_url_is_refused_and_not_shown(noun: type[Any], name: str, url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        noun(**{name: url})
    told = str(caught.value) + "\n".join(refusals(caught.value))
    assert "Remedy: " in told
    assert "hunter2" not in told
    assert "ter2" not in told


@pytest.mark.parametrize(
    "make",
    [
        lambda: Network(allowed=("8.0.0.0/9", "100.64.0.0/10", "10.0.0.0/8", "192.168.0.0/16", "fc00::/7")),
        lambda: Network(allowed=("10.0.0.0/8", "172.16.0.0/12", "100.77.1.2")),
        lambda: Network(allowed=("2001:db8::/32", "2a02:1230::/29")),
        lambda: Network(rule_name="ninfer-fleet-gpu.2"),
        lambda: Serve(api_key="env:K", host="fd7a:115c:a1e0::1"),
        lambda: Serve(host="127.0.0.9"),
        lambda: Serve(api_key="env:K", port="8080", max_concurrency=2.0),
        lambda: Serve(api_key="env:K", cors="true", ui=1),
        lambda: Engine(repository="ssh://git@github.com/a/b.git"),
        lambda: Engine(repository="file:///C:/mirror/ninfer.git"),
        lambda: Model(url="https://host:8443/a@v1/x.ninfer"),
        lambda: Task(path=r"\NInferServe 2", account="O'Brien"),
        lambda: Task(account=r"NT AUTHORITY\operator"),
        lambda: Task(account="S-1-5-21-1-2-3-1001"),
        lambda: Task(account="someone@example.org"),
        lambda: Task(path=r"\Ours\NInferFleet"),
    ],
)
def test_what_somebody_may_mean_is_taken(make: Any) -> None:
    make()


def test_every_number_has_an_end() -> None:
    """Nothing that is a number takes 10**30, whatever the noun."""
    for noun, field in Settings.model_fields.items():
        for name, setting in field.annotation.model_fields.items():  # type: ignore[union-attr]
            if "int" not in str(setting.annotation) and "float" not in str(setting.annotation):
                continue
            value: Any = (10**30,) if "tuple" in str(setting.annotation) else 10**30
            declared = {"serve": dict(KEY)}
            declared[noun] = {**declared.get(noun, {}), name: value}
            with pytest.raises(ValidationError) as caught:
                Settings.model_validate(declared)
            assert any(line.startswith(f"{noun}") for line in refusals(caught.value)), name
