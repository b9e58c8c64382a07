from __future__ import annotations

import subprocess
import sys

THREADS = """
import threading
import torch
from trainer.learner import use_threads

use_threads(2)
engine = threading.Thread(target=lambda: torch.set_num_threads(1))
engine.start()
engine.join()
print(torch.get_num_threads())
"""


def test_an_engine_that_takes_one_thread_does_not_take_it_from_training():
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True)
    assert done.stdout.strip() == "2", done.stderr
