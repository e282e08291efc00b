"""A real terminal for tests of `tenure`, which tmux draws."""

import subprocess

from command import TIMEOUT, tenure_path


class Screen:
    """A terminal of tmux with one command in it. tmux has a server of its own for each."""

    def __init__(self, folder, environment, *words, columns=120, lines=30):
        self.socket = f"{folder}/tmux.{id(self)}"
        self.environment = environment
        command = " ".join(f"'{word}'" for word in (tenure_path(), *words))
        # What it ended with stays on the screen.
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
