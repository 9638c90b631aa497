"""The docker engine: tasks in containers, by the command line of Docker, Podman or nerdctl."""
