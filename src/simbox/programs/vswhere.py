"""vswhere.exe: the installed Visual Studio as JSON."""

from __future__ import annotations

import json

from simbox.programs.invocation import Invocation

_TOOLS = "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"


def run(invocation: Invocation) -> int:
    """Exit codes: 0, 87 unknown argument. Instances that lack a required component are left out."""
    arguments = invocation.arguments
    studio = invocation.box.profile.get("toolchain", "visual_studio")
    options: dict[str, str] = {}
    position = 0
    while position < len(arguments):
        name = arguments[position].lstrip("-/").lower()
        if name in ("products", "requires", "format", "version", "property"):
            position += 1
            options[name] = arguments[position] if position < len(arguments) else ""
        elif name in ("latest", "utf8", "nologo", "all", "prerelease", "nocolor", "legacy", "include"):
            options[name] = "true"
        else:
            invocation.err(f'Error 0x57: Unknown parameter "{arguments[position]}"')
            return 87
        position += 1
    instances = []
    needs = options.get("requires", _TOOLS)
    products = options.get("products", "Microsoft.VisualStudio.Product.Community")
    if studio and needs == _TOOLS and products in ("*", studio["product"]):
        instances.append(
            {
                "instanceId": "5f4e3d2c",
                "installDate": "2026-08-11T02:14:55Z",
                "installationName": f"VisualStudio/{studio['version']}",
                "installationPath": studio["root"],
                "installationVersion": studio["version"],
                "productId": studio["product"],
                "productPath": studio["root"] + "\\Common7\\IDE\\devenv.exe",
                "state": 4294967295,
                "isComplete": True,
                "isLaunchable": True,
                "isPrerelease": False,
                "isRebootRequired": False,
                "displayName": "Visual Studio Community 2022",
            }
        )
    if options.get("format") == "json":
        invocation.out(json.dumps(instances, indent=2).replace("\n", "\r\n"))
        return 0
    if wanted := options.get("property"):
        for instance in instances:
            invocation.out(str(instance.get(wanted, "")))
        return 0
    for instance in instances:
        for key, value in instance.items():
            invocation.out(f"{key}: {value}")
    return 0
