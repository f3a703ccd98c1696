"""The steps from one schema to the next, for both engines (see `env.py`); `make migration` writes a new one."""
