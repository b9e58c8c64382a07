#!/bin/sh
# Prints a Python of at least 3.11, one that can make virtual environments if there is any.
# PYTHON=… names another; says what to install where there is none.
new='import sys; sys.exit(sys.version_info < (3, 11))'
full='import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))'
if [ -n "${PYTHON:-}" ]; then
    "$PYTHON" -c "$new" && { printf '%s\n' "$PYTHON"; exit 0; }
    echo "PYTHON=$PYTHON is no Python of at least 3.11." >&2
    exit 1
fi
for check in "$full" "$new"; do
    for python in python3.13 python3.12 python3.11 python3 python; do
        "$python" -c "$check" >/dev/null 2>&1 && { printf '%s\n' "$python"; exit 0; }
    done
done
found=$(python3 --version 2>/dev/null || echo "none")
echo "Sweet Studio needs Python 3.11 or newer; found: $found." >&2
echo "Debian and Ubuntu: sudo apt-get install python3 python3-venv" >&2
echo "macOS:             brew install python@3.13, or the installer from python.org" >&2
echo "Elsewhere:         make PYTHON=/path/to/python3.13 run" >&2
exit 1
