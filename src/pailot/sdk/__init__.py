"""The Python front door: jobs as objects, runs as objects. `import pailot` exports what is here."""
