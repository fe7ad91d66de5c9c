"""The call with several threads: threads=4. A lane has one thread otherwise."""

from assay.execution import Function, Plain, ability
from assay.frameworks import Framework
from assay.wire import refuse

MOST = 1024


class Way(Plain):
    """Sets the number of threads, for the whole lane."""

    takes_setting = True

    def __init__(self, framework: Framework, setting: str = "") -> None:
        super().__init__(framework, setting)
        if not setting.isdigit() or not 1 <= int(setting) <= MOST:
            refuse(f"threads=N takes a number from 1 to {MOST}, not {setting or 'nothing'}")

    def wrap(self, function: Function, api: str) -> Function:
        ability(self.framework, "use_threads", "number of threads")(int(self.setting))
        return function
