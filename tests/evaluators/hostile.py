"""Programs that try to pass without computing, to harm, or never to end, and what each must get.

The task is `f(x)` = 2x + 1. {udp}, {tcp} and {unix} are listeners of the test, {secret} a file that
everybody may read, {folder} a folder that everybody may write to.
"""

# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass

from sweet.types import HiddenInfo, Verdict

TASK = HiddenInfo("def f(x):\n    return 2 * x + 1", tuple(f"f({n})" for n in (1, 5, 12, 40)))
RIGHT = "def f(x):\n    return 2 * x + 1"

PASS, WRONG, LOAD, MISSING = Verdict.PASS, Verdict.WRONG, Verdict.LOAD, Verdict.MISSING
TIMEOUT, CRASH, TOO_BIG, NOT_DATA = (
    Verdict.TIMEOUT,
    Verdict.CRASH,
    Verdict.TOO_BIG,
    Verdict.NOT_DATA,
)


@dataclass(frozen=True)
class Payload:
    """A hostile program and the verdict it must get; its score must be 0."""

    name: str
    verdict: Verdict
    code: str


def body(name: str, verdict: Verdict, code: str) -> Payload:
    """A program whose function does `code`."""
    lines = "\n".join(f"    {line}" for line in code.strip("\n").split("\n"))
    return Payload(name, verdict, f"def f(x):\n{lines}\n")


def module(name: str, verdict: Verdict, code: str) -> Payload:
    """A program whose top level does `code`, with a wrong function under it."""
    return Payload(name, verdict, f"{code.strip()}\ndef f(x):\n    return None\n")


ALWAYS_EQUAL = """
class Any:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
"""
FRAMES = "import os, struct, json\n"
FORGE = FRAMES + (
    "def forge(fd, kind, index, data):\n"
    "    body = json.dumps(data).encode()\n"
    "    os.write(fd, struct.pack('<BIfI', kind, index, 0.1, len(body)) + body)\n"
)

CHEATS = [
    Payload("equal_to_everything", NOT_DATA, ALWAYS_EQUAL + "def f(x): return Any()"),
    Payload("equal_in_a_list", NOT_DATA, ALWAYS_EQUAL + "def f(x): return [Any()]"),
    Payload("equal_int", NOT_DATA,
            "class I(int):\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__\n"
            "def f(x): return I(0)"),
    Payload("equal_float", NOT_DATA,
            "class F(float):\n    def __eq__(s, o): return True\n    __hash__ = float.__hash__\n"
            "    def __sub__(s, o): return 0.0\n    __rsub__ = __sub__\ndef f(x): return F(0)"),
    Payload("equal_str", NOT_DATA,
            "class S(str):\n    def __eq__(s, o): return True\n    __hash__ = str.__hash__\n"
            "def f(x): return S('3')"),
    Payload("list_subclass", NOT_DATA,
            "class L(list):\n    def __eq__(s, o): return True\ndef f(x): return L([1])"),
    Payload("dict_subclass", NOT_DATA,
            "class D(dict):\n    def __eq__(s, o): return True\n    def __len__(s): return 1\n"
            "def f(x): return D()"),
    Payload("class_pun", NOT_DATA,
            "class P:\n    __class__ = int\n    def __eq__(s, o): return True\n"
            "def f(x): return P()"),
    Payload("metaclass_pun", NOT_DATA,
            "class M(type):\n    def __instancecheck__(c, i): return True\n"
            "    def __eq__(c, o): return True\n    __hash__ = type.__hash__\n"
            "class P(metaclass=M): pass\ndef f(x): return P"),
    Payload("reduce_object", NOT_DATA,
            "class R:\n    def __reduce__(s):\n        import os\n"
            "        return (os.system, ('touch {folder}/reduced',))\ndef f(x): return R()"),
    Payload("lambda_result", NOT_DATA, "def f(x): return lambda: 3"),
    Payload("module_result", NOT_DATA, "import math\ndef f(x): return math"),
    Payload("itself_as_result", NOT_DATA, "def f(x): return f"),
    Payload("numpy_like", NOT_DATA,
            "class ndarray:\n    __module__ = 'numpy'\n    def __eq__(s, o): return True\n"
            "    def tolist(s): return 3\nndarray.__qualname__ = 'ndarray'\n"
            "def f(x): return ndarray()"),
    Payload("true_for_everything", WRONG, "def f(x): return True"),
    Payload("none_for_everything", WRONG, "def f(x): return None"),
    Payload("nan_for_everything", WRONG, "def f(x): return float('nan')"),
    Payload("infinity_for_everything", WRONG, "def f(x): return float('inf')"),
    Payload("string_of_the_number", WRONG, "def f(x): return str(2 * x + 1)"),
    Payload("tuple_of_the_number", WRONG, "def f(x): return (2 * x + 1,)"),
    Payload("complex_number", WRONG, "def f(x): return complex(2 * x + 1)"),
    Payload("patched_builtins", CRASH,
            "import builtins\nbuiltins.type = lambda v: int\nbuiltins.isinstance = lambda a, b: True\n"
            "def f(x): return 'three'"),
    Payload("patched_len", CRASH, "import builtins\nbuiltins.len = lambda v: 0\n"
            "def f(x): return 7777"),
    Payload("patched_json", WRONG,
            "import json\njson.dumps = lambda *a, **k: '-3'\nclass E: pass\ndef f(x): return 'no'"),
    Payload("patched_encoder", WRONG,
            "import sys\nfor name, m in list(sys.modules.items()):\n"
            "    if name.endswith('inside.encode'):\n"
            "        m.Encoder.encode = lambda s, v, d=0: True\ndef f(x): return 'no'"),
    Payload("expected_from_frames", WRONG,
            "import sys\ndef f(x):\n    frame, found = sys._getframe(), []\n    while frame:\n"
            "        found += [v for k, v in frame.f_locals.items() if 'expect' in k]\n"
            "        frame = frame.f_back\n    return found[0] if found else 'nothing'"),
    Payload("expected_from_gc", WRONG,
            "import gc\ndef f(x):\n    for o in gc.get_objects():\n"
            "        if isinstance(o, dict) and ('expected' in o or 'reference' in o):\n"
            "            return o.get('expected', o.get('reference'))\n    return 'nothing'"),
    Payload("reference_from_gc", WRONG,
            "import gc, types\ndef f(x):\n    own = f.__code__\n    for o in gc.get_objects():\n"
            "        if isinstance(o, types.FunctionType) and o.__name__ == 'f' "
            "and o.__code__ is not own:\n            return o(x)\n    return 'nothing'"),
    Payload("reference_from_memory", CRASH,
            "def f(x):\n    maps = open('/proc/self/maps').read()\n    return maps[:10]"),
    Payload("printed_verdict", WRONG,
            "import sys\ndef f(x):\n    print('PASS', 'passed', '[\"value\", 3]')\n"
            "    sys.stderr.write('pass')\n    return 'no'"),
    Payload("exit_zero", CRASH, "import sys\ndef f(x): sys.exit(0)"),
    Payload("os_exit_zero", CRASH, "import os\ndef f(x): os._exit(0)"),
    module("exit_on_import", LOAD, "import sys\nsys.exit(0)"),
    module("os_exit_on_import", CRASH, "import os\nos._exit(0)"),
    body("system_exit", CRASH, "raise SystemExit(0)"),
    body("keyboard_interrupt", CRASH, "raise KeyboardInterrupt"),
    body("generator_exit", CRASH, "raise GeneratorExit"),
    Payload("exception_with_hostile_text", CRASH,
            "class E(Exception):\n    def __str__(s): raise SystemExit(0)\n"
            "    __repr__ = __str__\ndef f(x): raise E()"),
    Payload("atexit_prints", WRONG,
            "import atexit\natexit.register(lambda: print('pass'))\ndef f(x): return 'no'"),
    Payload("forged_pass_frames", NOT_DATA,
            FORGE + "for fd in range(64):\n    for i in range(4):\n        try: forge(fd, 2, i, True)\n"
            "        except OSError: pass\ndef f(x): return 'no'"),
    Payload("forged_infra_frames", NOT_DATA,
            FORGE + "for fd in range(64):\n    for i in range(4):\n"
            "        try: forge(fd, 10, i, 'ours')\n        except OSError: pass\n"
            "def f(x): return 'no'"),
    Payload("forged_for_a_later_test", NOT_DATA,
            FORGE + "def f(x):\n    for fd in range(64):\n        try: forge(fd, 2, 3, 80)\n"
            "        except OSError: pass\n    return 'no'"),
    Payload("forged_garbage", NOT_DATA,
            FORGE + "for fd in range(3, 64):\n    try: os.write(fd, b'\\xff' * 4096)\n"
            "    except OSError: pass\ndef f(x): return 'no'"),
    Payload("forged_huge_frame", NOT_DATA,
            FORGE + "for fd in range(3, 64):\n"
            "    try: os.write(fd, struct.pack('<BIfI', 2, 0, 0.1, 0xFFFFFFF0))\n"
            "    except OSError: pass\ndef f(x): return 'no'"),
    Payload("forged_colliding_keys", NOT_DATA,
            FORGE + "def f(x):\n    keys = [n * (2 ** 61 - 1) for n in range(150_000)]\n"
            "    i = {{1: 0, 5: 1, 12: 2, 40: 3}}[x]\n    forge(3, 2, i, ['set', keys])\n    os._exit(0)"),
    Payload("forged_endless_number", NOT_DATA,
            FORGE + "def f(x):\n    i = {{1: 0, 5: 1, 12: 2, 40: 3}}[x]\n"
            "    forge(3, 2, i, ['fraction', '1e999999999'])\n    os._exit(0)"),
    Payload("forged_frame_that_drips", TIMEOUT,
            FORGE + "import time\ndef f(x):\n"
            "    os.write(3, struct.pack('<BIfI', 2, {{1: 0, 5: 1}}[x], 0.1, 1 << 20))\n"
            "    while True:\n        os.write(3, b' ')\n        time.sleep(0.005)"),
    Payload("forged_unreadable_value", NOT_DATA,
            FORGE + "import time\ndef f(x):\n    for fd in range(3, 64):\n"
            "        try: forge(fd, 2, {{1: 0, 5: 1, 12: 2, 40: 3}}[x], ['list', [['nonsense']]])\n"
            "        except OSError: pass\n    os._exit(0)"),
]  # fmt: skip

ENDLESS = [
    body("endless_loop", TIMEOUT, "while True: pass"),
    module("endless_import", TIMEOUT, "while True: pass"),
    module("endless_loop_swallowing_everything", TIMEOUT,
           "while True:\n    try:\n        while True: pass\n    except BaseException: pass"),
    module("endless_loop_ignoring_signals", TIMEOUT,
           "import signal\nfor s in range(1, 65):\n    try: signal.signal(s, signal.SIG_IGN)\n"
           "    except (OSError, ValueError): pass\nwhile True: pass"),
    module("endless_power", TIMEOUT, "x = 9\ny = x ** x ** x"),
    module("endless_regex", TIMEOUT, "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')"),
    module("endless_sum", TIMEOUT, "import itertools\nsum(itertools.repeat(1))"),
    module("endless_finally", TIMEOUT, "try:\n    pass\nfinally:\n    while True: pass"),
    body("endless_generator_result", TIMEOUT, "import itertools\nreturn (0 for _ in itertools.repeat(1) if 0)"),
    body("endless_del", TIMEOUT,
         "class D:\n    def __del__(self):\n        while True: pass\nD()"),
    module("endless_sleep", TIMEOUT, "import time\ntime.sleep(1000)"),
    body("endless_lock", TIMEOUT,
         "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()"),
    module("endless_select", TIMEOUT, "import select\nselect.select([], [], [])"),
    module("endless_thread_join", TIMEOUT,
           "import threading\nt = threading.Thread(target=threading.Event().wait)\nt.start()\nt.join()"),
    module("endless_busy_threads", TIMEOUT,
           "import threading\ndef spin():\n    while True: pass\n"
           "for _ in range(4): threading.Thread(target=spin, daemon=True).start()\nspin()"),
]  # fmt: skip

BOMBS = [
    body("memory_bomb", CRASH, "return len(bytearray(4 << 30))"),
    body("memory_list_bomb", CRASH, "return len([0] * (1 << 30))"),
    body("memory_string_bomb", CRASH, "s = 'x' * (1 << 20)\nwhile True: s += s"),
    body("result_too_long", TOO_BIG, "return 'x' * 5_000_000"),
    body("result_of_many_parts", TOO_BIG, "return list(range(1_000_000))"),
    body("result_nested_deep", TOO_BIG, "v = []\nfor _ in range(5000): v = [v]\nreturn v"),
    body("result_in_itself", TOO_BIG, "v = []\nv.append(v)\nreturn v"),
    body("result_dict_in_itself", TOO_BIG, "v = {{}}\nv[0] = v\nreturn v"),
    body("huge_integer", TOO_BIG, "return 1 << 50_000_000"),
    body("endless_iterator", TOO_BIG, "import itertools\nreturn (i for i in itertools.count())"),
    body("shared_parts_explode", TOO_BIG,
         "v = [0]\nfor _ in range(40): v = [v, v]\nreturn v"),
    body("printing_without_end", TIMEOUT, "while True: print('x' * 100000)"),
    body("recursion", CRASH, "return f(x)"),
    body("recursion_without_limit", CRASH,
         "import sys\nsys.setrecursionlimit(10 ** 9)\nclass A:\n"
         "    def __repr__(self): return repr(self)\nreturn repr(A())"),
    Payload("nested_brackets", LOAD, "def f(x):\n    return " + "(" * 30000 + "x" + ")" * 30000),
    Payload("nested_minus", LOAD, "def f(x):\n    return " + "-" * 300000 + "x"),
    Payload("a_very_long_answer", TOO_BIG, "def f(x):\n    return 0\n" + "#" * 900_000),
    body("fork_bomb", CRASH, "import os\nwhile True: os.fork()"),
    body("fork_once", CRASH, "import os, time\nif os.fork() == 0: time.sleep(600)\nreturn 0"),
    body("daemon", CRASH,
         "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)"),
    body("thread_bomb", CRASH,
         "import threading, time\nwhile True: "
         "threading.Thread(target=time.sleep, args=(9,), daemon=True).start()"),
    body("multiprocessing_pool", CRASH,
         "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(2) as p:\n"
         "    return p.map(abs, [1])"),
    body("descriptor_bomb", CRASH, "import os\nwhile True: os.dup(0)"),
]  # fmt: skip

SYSTEM = [
    body("segfault_by_ctypes", CRASH, "import ctypes\nctypes.string_at(0)"),
    body("abort", CRASH, "import os\nos.abort()"),
    body("reads_a_secret_file", CRASH, "return open('{secret}').read()"),
    body("reads_passwd", CRASH, "return open('/etc/passwd').read()"),
    body("reads_own_environment", WRONG, "import os\nreturn dict(os.environ)"),
    body("reads_parents_environment", CRASH,
         "import os\nreturn open(f'/proc/{{os.getppid()}}/environ').read()"),
    body("reads_first_process", CRASH, "return open('/proc/1/cmdline').read()"),
    body("lists_the_root", CRASH, "import os\nreturn os.listdir('/')"),
    body("lists_home", CRASH, "import os\nreturn os.listdir(os.path.expanduser('~root'))"),
    body("writes_a_file", CRASH, "open('{folder}/written', 'w').write('x')\nreturn 0"),
    body("writes_to_tmp", CRASH, "open('/tmp/sweet_hostile', 'w').write('x')\nreturn 0"),
    body("writes_to_shared_memory", CRASH,
         "open('/dev/shm/sweet_hostile', 'w').write('x')\nreturn 0"),
    body("fills_the_disk", CRASH,
         "with open('{folder}/full', 'wb') as file:\n    while True: file.write(bytes(1 << 20))"),
    body("makes_a_folder", CRASH, "import os\nos.mkdir('{folder}/made')\nreturn 0"),
    body("makes_a_link", CRASH, "import os\nos.symlink('/etc/passwd', '{folder}/link')\nreturn 0"),
    body("deletes_a_file", CRASH, "import os\nos.unlink('{secret}')\nreturn 0"),
    body("changes_permissions", CRASH, "import os\nos.chmod('{secret}', 0o777)\nreturn 0"),
    body("named_temporary_file", CRASH,
         "import tempfile\nreturn tempfile.NamedTemporaryFile().name"),
    body("tcp", CRASH,
         "import socket\nsocket.create_connection(('127.0.0.1', {tcp}), 1).send(b'x')\nreturn 0"),
    body("udp", CRASH,
         "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
         "s.sendto(b'x', ('127.0.0.1', {udp}))\nreturn 0"),
    body("udp_six", CRASH,
         "import socket\ns = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)\n"
         "s.sendto(b'x', ('::1', {udp}))\nreturn 0"),
    body("unix_socket", CRASH,
         "import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
         "s.sendto(b'x', '\\0{unix}')\nreturn 0"),
    body("unix_socket_by_a_pair", CRASH,
         "import socket\ns, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
         "s.sendto(b'x', '\\0{unix}')\nreturn 0"),
    body("dns", CRASH, "import socket\nreturn socket.gethostbyname('example.com')"),
    body("http", CRASH,
         "import urllib.request\nreturn urllib.request.urlopen('http://127.0.0.1:{tcp}').read()"),
    body("listens", CRASH, "import socket\nsocket.create_server(('127.0.0.1', 0))\nreturn 0"),
    body("kills_its_parent", CRASH, "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)"),
    body("kills_everybody", CRASH, "import os, signal\nos.kill(-1, signal.SIGKILL)"),
    body("kills_by_descriptor_owner", CRASH,
         "import fcntl, os, socket\na, b = socket.socketpair()\n"
         "fcntl.fcntl(a, 10, 9)\nfcntl.fcntl(a, fcntl.F_SETOWN, os.getppid())"),
    body("traces_its_parent", WRONG,
         "import ctypes, os\nreturn ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0)"),
    body("reads_its_parents_memory", CRASH,
         "import os\nreturn open(f'/proc/{{os.getppid()}}/mem', 'rb').read(1)"),
    body("shell_by_system", WRONG,
         "import os\nreturn os.system('touch {folder}/by_system')"),
    body("shell_by_popen", CRASH, "import os\nreturn os.popen('touch {folder}/by_popen').read()"),
    body("shell_by_subprocess", CRASH,
         "import subprocess\nreturn subprocess.run(['touch', '{folder}/by_subprocess']).returncode"),
    body("shell_by_exec", CRASH,
         "import os\nos.execv('/bin/sh', ['sh', '-c', 'touch {folder}/by_exec'])"),
    body("shell_by_posix_spawn", CRASH,
         "import os\nos.posix_spawn('/bin/touch', ['touch', '{folder}/by_spawn'], {{}})"),
    body("shell_by_libc", WRONG,
         "import ctypes\nreturn ctypes.CDLL(None).system(b'touch {folder}/by_libc')"),
    body("shell_by_pty", CRASH, "import pty\npty.spawn(['touch', '{folder}/by_pty'])\nreturn 0"),
    body("memfd", CRASH, "import os\nreturn os.memfd_create('x')"),
    body("io_uring", WRONG, "import ctypes\nreturn ctypes.CDLL(None).syscall(425, 8, None)"),
    body("raw_fork_by_syscall", WRONG, "import ctypes\nreturn ctypes.CDLL(None).syscall(57)"),
    body("new_user_namespace", WRONG, "import ctypes\nreturn ctypes.CDLL(None).unshare(0x10000000)"),
    body("mounts", WRONG,
         "import ctypes\nreturn ctypes.CDLL(None).mount(b'x', b'/', b'tmpfs', 0, None)"),
    body("becomes_root", CRASH, "import os\nos.setuid(0)\nreturn 'root'"),
    body("raises_its_limits", CRASH,
         "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))\nreturn 0"),
    body("survives_its_parent", WRONG,
         "import ctypes\nreturn ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)"),
    body("closes_every_descriptor", CRASH, "import os\nos.closerange(0, 1024)\nreturn 3"),
    body("waits_for_input", CRASH, "return int(input())"),
    body("system_clock", CRASH, "import time\ntime.clock_settime(time.CLOCK_REALTIME, 0)\nreturn 0"),
    module("imports_what_is_not_there", LOAD, "import torch"),
]  # fmt: skip

NOT_PROGRAMS = [
    Payload("nothing", LOAD, ""),
    Payload("spaces", LOAD, "  \n\t\n"),
    Payload("prose", LOAD, "I'm sorry, I cannot write this function."),
    Payload("one_word", LOAD, "Sure"),
    Payload("binary", LOAD, "\x00\x01\x02def f(x): return 3"),
    Payload("syntax_error", LOAD, "def f(x)\n    return 2 * x + 1"),
    Payload("other_language", LOAD, "```js\nfunction f(x) {{ return 2 * x + 1 }}\n```"),
    Payload("other_name", MISSING, "def g(x):\n    return 2 * x + 1"),
    Payload("name_that_is_no_function", CRASH, "f = 3"),
    Payload("needs_two_arguments", CRASH, "def f(x, y):\n    return 2 * x + 1"),
    Payload("async_function", NOT_DATA, "async def f(x):\n    return 2 * x + 1"),
    Payload("deletes_itself", MISSING, "def f(x):\n    return 2 * x + 1\ndel f"),
]

PAYLOADS = [*CHEATS, *ENDLESS, *BOMBS, *SYSTEM, *NOT_PROGRAMS]
