"""Brings a box to the declared state: NInfer built for its card, served by a task, reachable over Tailscale
only.

    pyinfra inventory deploy.py --dry --diff      # what would change, exactly
    pyinfra inventory deploy.py -y                # make it so; a second run changes nothing

What is declared stands in group_data/ and the inventory; each value is checked by ninfer_fleet.settings.
"""

from pyinfra import host

from ninfer_fleet import preflight, reads, settings
from ninfer_fleet.engine import operations as engine
from ninfer_fleet.model import operations as model
from ninfer_fleet.owner import OWNER
from ninfer_fleet.server import operations as serve
from winfleet import files, firewall, task

box = settings.declared(host)

if box and preflight.passed(box):
    files.directories(name="Folders", paths=reads.folders(box))
    serve.guarded(name="Access to folders", box=box)

    built = engine.released(name="Engine built for this card", box=box)
    release = files.junction(name="Release in use", path=box.layout.current, target=reads.release_folder(box))
    artifact = model.present(name="Model verified", box=box)

    # Before the launcher, whose change stops the server: a port that is open to others leaves it as it was.
    firewall.rules(name="Port open to Tailscale only", rules=[serve.firewall_rule(box)], owner=OWNER)
    firewall.exposed_only_to(name="Port closed to everybody else", **serve.exposure(box))

    key = files.put(name="API key", files=serve.key_file(box))
    depth = serve.draft_depth(name="Draft depth", box=box)
    launcher = serve.launcher(name="Launcher", box=box, template="templates/serve_task.bat.j2")
    task.present(name="Task that keeps the server running", tasks=[serve.task(box)])
    started_from = {
        "engine": built,
        "release": release,
        "model": artifact,
        "API key": key,
        "draft depth": depth,
        "launcher": launcher,
    }
    serve.ready(name="Server answers", box=box, started_from=started_from)
