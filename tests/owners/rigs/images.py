"""Images for the containers of the tests, made here: a static busybox and nothing else."""
import hashlib
import io
import json
import pathlib
import tarfile

PAUSE = "gpuassay.example/pause:1"
BUSYBOX = "gpuassay.example/busybox:1"
APPLETS = ("sh", "sleep", "true")


def layer(busybox):
    """A tar of the file system: the same bytes every time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for folder in ("bin", "dev", "etc", "proc", "sys", "tmp"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        program = pathlib.Path(busybox).read_bytes()
        add(archive, "bin/busybox", program, 0o755)
        add(archive, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n")
        for name in APPLETS:
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, "busybox", 0o777
            archive.addfile(entry)
    return out.getvalue()


def add(archive, name, content, mode=0o644):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def write_archive(path, busybox):
    """Both images in the form of `docker save`, which every runtime imports."""
    content = layer(busybox)
    digest = hashlib.sha256(content).hexdigest()
    manifest = []
    with tarfile.open(path, mode="w") as archive:
        add(archive, f"{digest}/layer.tar", content)
        for name, command in ((PAUSE, ["/bin/sleep", "2147483647"]), (BUSYBOX, ["/bin/sh"])):
            config = json.dumps({
                "architecture": "amd64", "os": "linux", "created": "1970-01-01T00:00:00Z",
                "config": {"Cmd": command, "Env": ["PATH=/bin"], "Labels": {"name": name}},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}).encode()
            file = f"{hashlib.sha256(config).hexdigest()}.json"
            add(archive, file, config)
            manifest.append({"Config": file, "RepoTags": [name],
                             "Layers": [f"{digest}/layer.tar"]})
        add(archive, "manifest.json", json.dumps(manifest).encode())
