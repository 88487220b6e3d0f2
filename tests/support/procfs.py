"""What the kernel says about a process."""

import os
import subprocess


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def _stat_fields(path):
    with open(path) as stat:
        return stat.read().rpartition(")")[2].split()


def cpu_seconds(pid):
    fields = _stat_fields(f"/proc/{pid}/stat")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def state(pid):
    return _stat_fields(f"/proc/{pid}/stat")[0]


def of_session(leader):
    """Those of that session that have not ended, without its leader."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = _stat_fields(f"/proc/{pid}/stat")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[3] == str(leader) and fields[0] != "Z" and pid != str(leader):
            found.append(int(pid))
    return found


def threads(pid):
    return sorted(int(tid) for tid in os.listdir(f"/proc/{pid}/task"))


def thread_switches(pid, tid):
    """How often a thread went to sleep by itself: about once for each turn of its loop."""
    with open(f"/proc/{pid}/task/{tid}/status") as status:
        for line in status:
            if line.startswith("voluntary_ctxt_switches:"):
                return int(line.split()[1])
    raise LookupError("voluntary_ctxt_switches")


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptor_limits(pid):
    """(soft, hard)"""
    with open(f"/proc/{pid}/limits") as limits:
        for line in limits:
            if line.startswith("Max open files"):
                soft, hard = line.split()[3:5]
                return int(soft), int(hard)
    raise LookupError("Max open files")


def children(pid):
    found = []
    for tid in threads(pid):
        with open(f"/proc/{pid}/task/{tid}/children") as listing:
            found += [int(child) for child in listing.read().split()]
    return found


def sockets_of_port(port, *options, prefix=()):
    """The lines of `ss` for TCP sockets whose own port this is."""
    output = subprocess.run(
        [*prefix, "ss", "-Htn", *options, f"sport = :{port}"],
        check=True,
        capture_output=True,
        text=True,
        timeout=10,
    ).stdout
    return [line for line in output.splitlines() if line.strip()]


def listening_ports(pid):
    """TCP ports on which this process listens."""
    inodes = set()
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(entry.path)
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    ports = set()
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{pid}/net/{table}") as rows:
            for row in list(rows)[1:]:
                fields = row.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports
