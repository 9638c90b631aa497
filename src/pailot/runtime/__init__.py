"""What travels to the task: Python 3.9 or newer and its standard library are all it may expect there."""
