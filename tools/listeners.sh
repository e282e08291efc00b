# Functions about listening TCP ports, for the scripts that start servers. Needs ss (iproute2).

# listener_of PORT: prints the id of the process that listens on the port. Prints nothing if the
# port is free, or if the process belongs to another user.
listener_of() {
  if [[ $(ss -Hltnp "sport = :$1") =~ pid=([0-9]+) ]]; then
    echo "${BASH_REMATCH[1]}"
  fi
}

# name_listeners PORT...: prints a line with process id and command for each port in use.
name_listeners() {
  local port pid command
  for port in "$@"; do
    pid=$(listener_of "$port")
    if [[ -n $pid ]]; then
      command=$(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" || true)
      echo "port $port is in use by process $pid: $command"
    elif [[ -n $(ss -Hltn "sport = :$port") ]]; then
      echo "port $port is in use by a process of another user; as root: ss -ltnp 'sport = :$port'"
    fi
  done
}
