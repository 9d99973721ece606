from . import synthesis as synthesis
