#!/usr/bin/python3
"""Makes the Debian packages from the build trees and checks their contents, their dependencies and
the findings of lintian. Then installs them into a separate root directory, starts tenured there
under the system call filter of its unit, takes a lock with tenure, takes a snapshot, restarts
tenured, and builds a program with libtenure-dev.

    run.py source-dir build-dir compiler

The programs are those of build-dir, the shared libraries those of build-dir-shared, which the test
`install` builds. The root is an overlay of this machine's, which needs the right to mount; without
it the packages are unpacked into a folder and used from there.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

VERSION = "0.1.0"
LIBRARIES = ("cluster", "redis", "etcd", "zookeeper", "fence-sqlite", "fence-postgresql",
             "fence-redis")
ARCHITECTURE = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True,
                              check=True).stdout.strip()
MULTIARCH = subprocess.run(["dpkg-architecture", "-qDEB_HOST_MULTIARCH"], capture_output=True,
                           text=True, check=True).stdout.strip()
LIB = f"/usr/lib/{MULTIARCH}"

# package -> files that have to be in it
FILES = {
    "libtenure0": [f"{LIB}/libtenure.so.0"],
    **{f"libtenure-{name}0": [f"{LIB}/libtenure_{name.replace('-', '_')}.so.0"]
       for name in LIBRARIES},
    "libtenure-dev": [f"{LIB}/libtenure.so", f"{LIB}/libtenure_cluster.so",
                      f"{LIB}/pkgconfig/tenure.pc", f"{LIB}/pkgconfig/tenure_cluster.pc",
                      f"{LIB}/cmake/tenure/tenure-config.cmake",
                      "/usr/include/tenure/client/client.hpp"],
    "tenured": ["/usr/bin/tenured", "/lib/systemd/system/tenured.service",
                "/etc/tenure/tenure.toml", "/usr/share/doc/tenured/how_to/run_a_cluster.md.gz",
                "/usr/share/doc/tenured/how_to/secure.md.gz",
                "/usr/share/doc/tenured/reference/settings.md.gz",
                "/usr/share/doc/tenured/reference/openapi.json.gz",
                "/usr/share/doc/tenured/monitoring/tenure.json.gz",
                "/usr/share/doc/tenured/monitoring/tenure.rules.yml",
                "/usr/share/doc/tenured/proto/tenure/v1/lock.proto"],
    "tenure": ["/usr/bin/tenure", "/usr/share/man/man1/tenure.1.gz",
               "/usr/share/man/man1/tenure-run.1.gz",
               "/usr/share/bash-completion/completions/tenure",
               "/usr/share/zsh/vendor-completions/_tenure",
               "/usr/share/fish/vendor_completions.d/tenure.fish"],
}
# package -> what must be among its dependencies, as regular expressions
NEEDS = {
    "libtenure0": [r"libc6 \(", r"libstdc\+\+6 \(", r"libabsl"],
    "libtenure-cluster0": [rf"libtenure0 \(= {VERSION}\)", r"libnghttp2-14", r"libprotobuf"],
    "libtenure-redis0": [rf"libtenure0 \(= {VERSION}\)", r"libhiredis"],
    "libtenure-zookeeper0": [r"libzookeeper-mt2"],
    "libtenure-fence-postgresql0": [r"libpq5"],
    "libtenure-dev": [rf"libtenure0 \(= {VERSION}\)", rf"libtenure-etcd0 \(= {VERSION}\)"],
    "tenured": [r"adduser", r"libraft0 \(>= 0\.22\.1", r"libsystemd0", r"libjemalloc2"],
    "tenure": [r"libnghttp2-14"],
}
# package -> what must not be
NEEDS_NOT = {"libtenure0": "protobuf|hiredis|zookeeper|sqlite|pq", "tenured": "libtenure",
             "tenure": "libtenure", "libtenure-redis0": "protobuf|zookeeper"}


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n"
                 f"{done.stdout}{done.stderr}")
    return done.stdout


def require(is_so, what):
    if not is_so:
        sys.exit(what)


def field(deb, name):
    return run("dpkg-deb", "--field", deb, name).strip()


def check_contents(debs):
    require(set(debs) == set(FILES), f"packages: {sorted(debs)}, not {sorted(FILES)}")
    for package, deb in debs.items():
        listed = re.findall(r" \.(/\S*)(?: -> (\S+))?$", run("dpkg-deb", "--contents", deb), re.M)
        names = {name.rstrip("/") for name, _ in listed}
        doc = f"/usr/share/doc/{package}"
        for wanted in (*FILES[package], f"{doc}/copyright", f"{doc}/changelog.gz"):
            require(wanted in names, f"{package} lacks {wanted}: {sorted(names)}")
        for name in names:
            require(not re.search(r"/local/|\.a$|/man/.*\.[0-9]$|site-functions", name),
                    f"{package} has {name}")
        for name, target in listed:
            if target and package != "libtenure-dev":
                there = os.path.normpath(os.path.join(os.path.dirname(name), target))
                require(there in names, f"{package}: {name} leads to {target}, which is not there")


def check_fields(debs):
    for package, deb in debs.items():
        require(field(deb, "Version") == VERSION, f"{package}: version {field(deb, 'Version')}")
        require(field(deb, "Architecture") == ARCHITECTURE, f"{package}: architecture")
        needs = field(deb, "Depends")
        for wanted in NEEDS.get(package, ()):
            require(re.search(wanted, needs), f"{package} does not depend on {wanted}: {needs}")
        if package in NEEDS_NOT:
            require(not re.search(NEEDS_NOT[package], needs), f"{package} depends on {needs}")
    require(run("dpkg-deb", "--info", debs["tenured"], "conffiles").split() ==
            ["/etc/tenure/tenure.toml"], "conffiles of tenured")


def check_lintian(debs, source):
    # Warnings, too. What is tolerated is in packaging/debian/lintian, each with its reason.
    tolerated = [line.split()[0] for line in
                 (source / "packaging/debian/lintian").read_text(encoding="utf-8").splitlines()
                 if line and not line.startswith("#")]
    if "/man/man8/tenured.8" not in run("dpkg-deb", "--contents", debs["tenured"]):
        tolerated.append("no-manual-page")  # a tenured that does not know --print-man
    lintian = subprocess.run(
        ["lintian", "--allow-root", "--no-cfg", "--fail-on", "error,warning",
         "--suppress-tags", ",".join(tolerated), *map(str, debs.values())],
        capture_output=True, text=True, check=False)
    require(lintian.returncode == 0, f"lintian: {lintian.stdout}{lintian.stderr}")



def may_mount():
    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as folder:
        script = (f"mount -t tmpfs t {folder} && mkdir {folder}/u {folder}/w {folder}/m && "
                  f"mount -t overlay o -o lowerdir=/,upperdir={folder}/u,workdir={folder}/w "
                  f"{folder}/m")
        done = subprocess.run(["unshare", "--mount", "--net", "sh", "-c", script],
                              capture_output=True, check=False)
        return done.returncode == 0


def use_installed(work, source, compiler):
    (work / "layers").mkdir()
    (work / "root").mkdir()
    here = pathlib.Path(__file__).parent
    shutil.copy(here / "unit_filter.py", work)
    copied = shutil.copy(here / "in_root.sh", work)
    done = subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "bash",
                           str(copied), str(work), str(source), compiler], check=False)
    require(done.returncode == 0, "the installed packages do not work")


def use_unpacked(work, debs, compiler):
    print("no right to mount: unpacked into a folder, not installed")
    root = work / "unpacked"
    for deb in debs.values():
        run("dpkg-deb", "--extract", deb, root)
    log = (work / "tenured.log").open("w+", encoding="utf-8")
    server = subprocess.Popen(
        [str(pathlib.Path(__file__).parent / "unit_filter.py"),
         str(root / "lib/systemd/system/tenured.service"), str(root / "usr/bin/tenured"),
         "--data-dir", str(work / "store"), "--listen-grpc", "127.0.0.1:0", "--listen-http", "off",
         "--log-format", "json"], stderr=log)
    try:
        port = None
        while port is None:
            require(server.poll() is None, "tenured does not start")
            port = re.search(r'"grpc_port":(\d+)', (work / "tenured.log").read_text())
        url = f"tenure://127.0.0.1:{port[1]}"
        require(run(root / "usr/bin/tenure", "--url", url, "run", "a", "--", "echo", "held") ==
                "held\n", "tenure does not lock")
        tree = work / "consumer_build"
        run("cmake", "-S", work / "consumer", "-B", tree, "-G", "Ninja",
            f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_PREFIX_PATH={root / 'usr'}")
        run("cmake", "--build", tree)
        libraries = {**os.environ, "LD_LIBRARY_PATH": f"{root}{LIB}"}
        require("then free" in run(tree / "cluster", url, env=libraries), "the consumer fails")
        server.terminate()
        require(server.wait() == 0, "tenured does not stop under the filter of its unit")
    finally:
        server.kill()
        server.wait()
        log.close()


def main():
    source, build, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    with tempfile.TemporaryDirectory(prefix="tenure_package.") as folder:
        work = pathlib.Path(folder)
        shared = build.with_name(build.name + "-shared")
        made = run(source / "tools/package.sh", build, shared, work / "debs")
        debs = {path.name.split("_")[0]: path for path in map(pathlib.Path, made.split())}
        check_contents(debs)
        check_fields(debs)
        check_lintian(debs, source)
        shutil.copytree(source / "tests/install/consumer", work / "consumer")
        if may_mount():
            use_installed(work, source, compiler)
        else:
            use_unpacked(work, debs, compiler)


if __name__ == "__main__":
    main()
