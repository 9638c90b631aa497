"""The folder of a run: what its files are called, what they hold, and how they are read. Travels to task machines."""
