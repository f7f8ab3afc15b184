"""Takes NInfer off a box: server, task, firewall rule, releases, build, key. Model, disk cache and logs stay.

pyinfra inventory deploys/teardown.py --dry --diff
pyinfra inventory deploys/teardown.py -y
"""

from pyinfra import host

from ninfer_fleet import settings
from ninfer_fleet.engine import operations as engine
from ninfer_fleet.model import operations as model
from ninfer_fleet.owner import OWNER
from ninfer_fleet.server import operations as serve
from winfleet import files, firewall, task

box = settings.declared(host)

if box:
    layout = box.layout
    serve.stopped(name="Server stopped", box=box)
    task.absent(name="Tasks gone", paths=[box.task.path, *engine.job_tasks(), *model.job_tasks()])
    firewall.absent(name="Port closed", names=[box.network.rule_name], owner=OWNER)
    files.absent(
        name="Files gone, but for model, cache and logs",
        # The junction before the releases that it leads to.
        paths=[
            layout.current,
            layout.releases,
            layout.build,
            layout.source,
            layout.jobs,
            layout.launcher,
            layout.secrets,
            layout.state,
        ],
        recurse=True,
    )
