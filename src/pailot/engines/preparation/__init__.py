"""What every engine on this machine prepares: working directories, children, Unix owner, GPUs, sandbox."""
