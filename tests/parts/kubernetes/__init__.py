"""A real Kubernetes for tests: control plane and nodes on this one machine, without a container around them or a registry.

make kubernetes                                          # builds the programs once, into a cache outside the checkout
python -m tests.parts.kubernetes.cluster up /tmp/lab 3   # starts three nodes; prints the line that sets KUBECONFIG
python -m tests.parts.kubernetes.cluster cut /tmp/lab n2 # a power cut; `return` switches the node on again
python -m tests.parts.kubernetes.cluster down /tmp/lab
"""
