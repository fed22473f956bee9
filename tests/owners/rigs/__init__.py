"""Real container runtimes, a real Slurm and a real Kubernetes on this machine.

A rig is a context manager around start() and stop(), in a directory of its own. Nothing is
installed and no service is touched: programs are unpacked below build/tools, daemons listen on Unix
sockets or 127.0.0.1, and stop() ends by PID what the rig started. Rigs need root.
"""
