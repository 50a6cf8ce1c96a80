"""What is on this machine, for run.sh: standard library only, nothing is imported that is measured.

  machine.py gpu           the device's name; exit code 1 where there is none
  machine.py has MODULE    exit code 1 where Python has no such package
  machine.py flags PEER    the compiler's flags for src/PEER.cpp, one a line; exit code 1 and what is missing
  machine.py quiet COUNT   the numbers of so many processors on which a loop runs fastest just now, with commas between
  machine.py about         a JSON object that says where the figures come from
"""

import ctypes
import glob
import importlib.metadata
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import time


def gpu():
    """The name of GPU 0, or an error's text and None."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return None, f"no CUDA driver: {error}"
    count, device, name = ctypes.c_int(0), ctypes.c_int(0), ctypes.create_string_buffer(256)
    if result := driver.cuInit(0):
        return None, f"the CUDA driver finds no device: cuInit answers {result}"
    if driver.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        return None, "the CUDA driver knows no device"
    driver.cuDeviceGet(ctypes.byref(device), 0)
    driver.cuDeviceGetName(name, len(name), device)
    return name.value.decode(), ""


def loop_ns():
    """What a fixed loop takes, a quarter of a millisecond or so."""
    began = time.perf_counter_ns()
    n = 0
    for _ in range(8000):
        n += 1
    return time.perf_counter_ns() - began


def quiet(count):
    """The processors that neighbours disturb least: on a shared host they may have the other half of a core for seconds."""
    allowed = os.sched_getaffinity(0)
    took = {}
    for cpu in allowed:
        os.sched_setaffinity(0, {cpu})
        took[cpu] = sorted(loop_ns() for _ in range(5))[2]
    os.sched_setaffinity(0, allowed)
    return sorted(sorted(allowed, key=took.get)[:count])


def package_dir(name):
    """The folder of an installed package, or None."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        return None
    if spec.origin:
        return os.path.dirname(spec.origin)
    return next(iter(spec.submodule_search_locations or []), None)


def cuda_roots():
    """Where toolkits may be, the likeliest first."""
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    if nvcc := shutil.which("nvcc"):
        roots.append(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))))
    roots += ["/usr/local/cuda", *sorted(glob.glob("/usr/local/cuda-*"), reverse=True)]
    roots = [r for r in roots if r]
    roots += [os.path.join(r, "targets", "x86_64-linux") for r in roots]
    if packages := package_dir("nvidia"):
        roots += sorted(glob.glob(os.path.join(packages, "cu[0-9]*")), reverse=True)
        roots += sorted(glob.glob(os.path.join(packages, "cuda_runtime")))
    return roots


def first(paths):
    return next((p for p in paths if os.path.exists(p)), None)


def release(library):
    """The number behind the name of a shared library, for sorting: the newest first."""
    digits = os.path.basename(os.path.realpath(library)).rpartition(".so.")[2].split(".")
    return [-int(d) for d in digits if d.isdigit()]


def cudart(torch):
    """The runtime's shared library: PyTorch's own where there is one, so that a process has one only."""
    found = []
    if packages := package_dir("nvidia"):
        found += sorted(glob.glob(os.path.join(packages, "*", "lib", "libcudart.so*")), key=release)
    if torch:
        found += sorted(glob.glob(os.path.join(torch, "lib", "libcudart*.so*")))
    for root in cuda_roots():
        for lib in ("lib64", "lib"):
            found += sorted(glob.glob(os.path.join(root, lib, "libcudart.so*")))
    return found[0] if found else None


def flags(peer):
    """Flags, or what is missing."""
    include = next(
        (
            os.path.join(r, "include")
            for r in cuda_roots()
            if first([os.path.join(r, "include", "cuda_runtime_api.h")])
            and first([os.path.join(r, "include", "crt", "host_defines.h")])
        ),
        None,
    )
    torch = package_dir("torch")
    runtime = cudart(torch)
    if include is None:
        return None, "no CUDA headers (cuda_runtime_api.h); looked in " + ", ".join(cuda_roots())
    if runtime is None:
        return None, "no libcudart.so; looked in " + ", ".join(cuda_roots())
    compile_flags, link_flags = ["-isystem", include], [runtime, f"-Wl,-rpath,{os.path.dirname(runtime)}"]
    if peer == "torch":
        if torch is None:
            return None, "no package torch"
        headers, libraries = os.path.join(torch, "include"), os.path.join(torch, "lib")
        if not os.path.exists(os.path.join(headers, "c10", "cuda", "CUDACachingAllocator.h")):
            return None, f"no headers of PyTorch in {headers}"
        compile_flags = ["-isystem", headers, *compile_flags]
        link_flags = [f"-L{libraries}", "-Wl,--no-as-needed", "-lc10_cuda", "-lc10", f"-Wl,-rpath,{libraries}"] + link_flags
    return compile_flags + link_flags, ""


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def printed(*command):
    """What a command prints, or None."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def cpu_name():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor()


def about():
    cupy_package = next((p for p in ("cupy-cuda13x", "cupy-cuda12x", "cupy") if version(p)), "cupy")
    return {
        "gpu": gpu()[0],
        "driver": printed("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "torch": version("torch"),
        "cupy": version(cupy_package),
    }


def main(argv):
    match argv:
        case ["gpu"]:
            name, problem = gpu()
            if name is None:
                sys.exit(problem)
            print(name)
        case ["has", module]:
            if package_dir(module) is None:
                sys.exit(1)
        case ["flags", peer]:
            found, problem = flags(peer)
            if found is None:
                sys.exit(problem)
            print("\n".join(found))
        case ["quiet", count]:
            print(",".join(map(str, quiet(int(count)))))
        case ["about"]:
            print(json.dumps(about()))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
