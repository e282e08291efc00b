/* Model of the wait queue and the hand-over of a fair mutex on Redis (src/backends/redis/scripts),
 * for spin.
 *
 * A script is one atomic step. A client may crash at any point. The server may or may not notice that
 * the client's connection is gone, and the client's entry expires some time later. The connection for
 * notifications may break and lose a message in flight. Checked properties:
 *
 *   exclusion        at most one live client holds the lock (assert)
 *   fifo             no client is granted before an earlier one that is alive and connected (assert)
 *   no lost wake-up  every waiter is granted: no reachable state has only waiters (invalid end
 *                    state). The timer acts only after an entry has expired; it does not poll.
 *
 * With -DPUBLISHED_PROTOCOL the clients follow the published protocol that these scripts correct
 * (docs/explanation/traceability.md), and spin finds the client that is never notified. Run by
 * tools/check_models.sh.
 */

#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef DROPS
#define DROPS 1
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#define NONE CLIENTS

byte holder = NONE;
byte queue[CLIENTS];       /* waiting clients in FIFO order */
byte waiting = 0;
bool crashed[CLIENTS];
bool closed[CLIENTS];      /* crashed, and the server closed its connection: it receives no message */
bool expired[CLIENTS];     /* crashed, and its lease expired without a renewal */
bool disconnected[CLIENTS];        /* its connection for notifications is broken */
bool notified[CLIENTS];        /* a notification has arrived or is in flight */
bool finished[CLIENTS];

/* State of the checks. */
byte in_section = 0;
byte ticket_of[CLIENTS];        /* ticket in arrival order; 0: does not wait */
byte tickets = 0;
byte crashes = 0;
byte drops = 0;

/* Removes the entry at index `at` of the queue. */
inline remove_at(at) {
  k = at;
  do
  :: k + 1 < waiting -> queue[k] = queue[k + 1]; k++
  :: else -> break
  od;
  waiting--;
  queue[waiting] = 0
}

inline check_grant(next) {
  k = 0;
  do
  :: k < CLIENTS ->
     assert(!(k != next && ticket_of[k] != 0 && ticket_of[k] < ticket_of[next] && !crashed[k] && !disconnected[k]));
     k++
  :: else -> break
  od;
  ticket_of[next] = 0;
  k = 0
}

#ifndef PUBLISHED_PROTOCOL

/* lock.lua: open() */
inline purge() {
  if
  :: holder != NONE && expired[holder] -> holder = NONE
  :: else
  fi;
  j = 0;
  do
  :: j < waiting && expired[queue[j]] -> remove_at(j)
  :: j < waiting && !expired[queue[j]] -> j++
  :: else -> break
  od;
  j = 0
}

/* lock.lua: serve(). The reply notifies the caller, a message notifies every other client. */
inline serve(caller) {
  j = 0;
  do
  :: holder != NONE || j >= waiting -> break
  :: else ->
     next = queue[j];
     if
     :: next == caller || !(disconnected[next] || closed[next]) ->
        remove_at(j);
        holder = next;
        check_grant(next);
        notified[next] = (next != caller)
     :: else -> j++  /* keeps its position */
     fi
  od;
  j = 0; next = 0
}

/* acquire.lua */
inline acquire(me, granted) {
  purge();
  j = 0;
  do
  :: j < waiting && queue[j] != me -> j++
  :: else -> break
  od;
  if
  :: holder == me -> ticket_of[me] = 0; granted = true          /* a retry */
  :: holder != me && j < waiting -> j = 0; serve(me); granted = (holder == me)
  :: holder == NONE && waiting == 0 ->
     tickets++; ticket_of[me] = tickets; holder = me; check_grant(me); granted = true
  :: else ->
     tickets++; ticket_of[me] = tickets; queue[waiting] = me; waiting++;
     j = 0; serve(me); granted = (holder == me)
  fi;
  j = 0
}

/* release.lua */
inline release(me) {
  purge();
  if
  :: holder == me -> holder = NONE
  :: else
  fi;
  serve(NONE)
}

/* expire.lua */
inline expire_holder() {
  purge();
  serve(NONE)
}

#else  /* The published protocol to the letter; keys of crashed holders expire. */

inline expire() {
  if
  :: holder != NONE && expired[holder] -> holder = NONE
  :: else
  fi
}

inline acquire(me, granted) {
  expire();
  if
  :: ticket_of[me] == 0 -> tickets++; ticket_of[me] = tickets
  :: else
  fi;
  if
  :: holder == NONE && waiting == 0 -> holder = me; check_grant(me); granted = true
  :: holder == NONE && waiting != 0 ->
     j = 0;
     do
     :: j < waiting && queue[j] != me -> j++
     :: else -> break
     od;
     if
     :: j >= waiting -> queue[waiting] = me; waiting++
     :: else
     fi;
     j = 0;
     next = queue[0];
     remove_at(0);
     holder = next;
     check_grant(next);
     if
     :: next == me -> granted = true
     :: else -> notified[next] = true; notified[me] = false
     fi;
     next = 0
  :: else -> notified[me] = false
  fi
}

inline release(me) {
  expire();
  if
  :: holder == me ->
     holder = NONE;
     if
     :: waiting != 0 -> notified[queue[0]] = true
     :: else
     fi
  :: else
  fi
}

#endif

inline crash(me) {
  crashes++;
  crashed[me] = true;
  ticket_of[me] = 0;
  notified[me] = false;
  if
  :: closed[me] = true
  :: skip  /* power failure: the connection is not closed */
  fi
}

proctype client(byte me) {
  byte rounds = 0;
  byte j = 0;
  byte k = 0;
  byte next = 0;
  bool granted = false;

  do
  :: rounds == ROUNDS -> break
  :: rounds < ROUNDS ->
     atomic { acquire(me, granted) };
     do
     :: granted -> break
     :: atomic { !granted && notified[me] && !disconnected[me] ->
          notified[me] = false;
#ifdef PUBLISHED_PROTOCOL
          acquire(me, granted)
#else
          granted = true
#endif
        }
     :: atomic { !granted && disconnected[me] -> disconnected[me] = false; acquire(me, granted) }
     :: atomic { !granted && (holder != NONE && expired[holder]) ->
#ifdef PUBLISHED_PROTOCOL
          acquire(me, granted)  /* BLPOP times out after the lock time */
#else
          expire_holder()
#endif
        }
     :: atomic { !granted && crashes < CRASHES -> crash(me); goto gone }
     od;
     notified[me] = false;
     atomic { in_section++; assert(in_section == 1) };
     if
     :: atomic { in_section--; release(me) }
     :: atomic { crashes < CRASHES -> in_section--; crash(me); goto gone }
     fi;
     granted = false;
     rounds++
  od;
gone:
  finished[me] = true
}

/* Expiry of leases, and faults of the network. */
proctype environment() {
  byte i = 0;
end:
  do
  :: atomic { crashed[0] && !expired[0] -> expired[0] = true }
  :: atomic { crashed[1] && !expired[1] -> expired[1] = true }
  :: atomic { crashed[2] && !expired[2] -> expired[2] = true }
#if CLIENTS > 3
  :: atomic { crashed[3] && !expired[3] -> expired[3] = true }
#endif
  :: atomic { drops < DROPS -> drops++; select(i : 0 .. CLIENTS - 1);
       if
       :: !crashed[i] && !finished[i] -> disconnected[i] = true; notified[i] = false
       :: else
       fi;
       i = 0 }
  od
}

init {
  byte n = 0;
  atomic {
    run environment();
    do
    :: n < CLIENTS -> run client(n); n++
    :: else -> break
    od
  }
}
