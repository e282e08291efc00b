"""Terminal for tests of `tenure`, emulated by tmux."""

import subprocess

from command import TIMEOUT, tenure_path


class Screen:
    """A tmux terminal that runs one command. Each has its own tmux server."""

    def __init__(self, folder, environment, *words, columns=120, lines=30):
        self.socket = f"{folder}/tmux.{id(self)}"
        self.environment = environment
        command = " ".join(f"'{word}'" for word in (tenure_path(), *words))
        # The exit code stays on the screen.
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines),
                  f"{command}; echo left with $?; exec cat")

    def tmux(self, *words):
        return subprocess.run(["tmux", "-S", self.socket, *words], env=self.environment, text=True,
                              capture_output=True, timeout=TIMEOUT, check=True).stdout

    def text(self):
        return self.tmux("capture-pane", "-p")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def end(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], env=self.environment,
                       capture_output=True, timeout=TIMEOUT, check=False)
