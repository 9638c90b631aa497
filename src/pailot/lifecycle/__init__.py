"""When is it over, what is retried? Pure functions over plain values, for every process that has to know.

`states` has the words, `completion` ends a job, `retry` says what runs again, `exits` explains how a task ended.
The room travels to the task: standard library only, Python 3.9 upward. Import the module you need; this one loads nothing.
"""
