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
#define NOBODY CLIENTS

byte holder = NOBODY;
byte queue[CLIENTS];       /* who waits, in order */
byte waiting = 0;
bool crashed[CLIENTS];
bool closed[CLIENTS];      /* crashed, and the server knows: what is published there is heard by nobody */
bool expired[CLIENTS];     /* crashed, and nobody renewed: its time is over */
bool deaf[CLIENTS];        /* the connection that wakes it is broken */
bool told[CLIENTS];        /* a message is there, or on its way */
bool finished[CLIENTS];

/* Only to judge. */
byte inside = 0;
byte came[CLIENTS];        /* its turn; 0: does not wait */
byte tickets = 0;
byte crashes = 0;
byte drops = 0;

/* Takes the one at `at` out of the queue. */
inline take_out(at) {
  k = at;
  do
  :: k + 1 < waiting -> queue[k] = queue[k + 1]; k++
  :: else -> break
  od;
  waiting--;
  queue[waiting] = 0
}

inline judge_grant(who) {
  k = 0;
  do
  :: k < CLIENTS ->
     assert(!(k != who && came[k] != 0 && came[k] < came[who] && !crashed[k] && !deaf[k]));
     k++
  :: else -> break
  od;
  came[who] = 0;
  k = 0
}

#ifndef PUBLISHED_PROTOCOL

/* lock.lua: open() */
inline purge() {
  if
  :: holder != NOBODY && expired[holder] -> holder = NOBODY
  :: else
  fi;
  j = 0;
  do
  :: j < waiting && expired[queue[j]] -> take_out(j)
  :: j < waiting && !expired[queue[j]] -> j++
  :: else -> break
  od;
  j = 0
}

/* lock.lua: serve(); the caller is told by the answer, everybody else by a message. */
inline serve(caller) {
  j = 0;
  do
  :: holder != NOBODY || j >= waiting -> break
  :: else ->
     who = queue[j];
     if
     :: who == caller || !(deaf[who] || closed[who]) ->
        take_out(j);
        holder = who;
        judge_grant(who);
        told[who] = (who != caller)
     :: else -> j++  /* keeps its place */
     fi
  od;
  j = 0; who = 0
}

/* acquire.lua */
inline acquire(me, mine) {
  purge();
  j = 0;
  do
  :: j < waiting && queue[j] != me -> j++
  :: else -> break
  od;
  if
  :: holder == me -> came[me] = 0; mine = true          /* a retry */
  :: holder != me && j < waiting -> j = 0; serve(me); mine = (holder == me)
  :: holder == NOBODY && waiting == 0 ->
     tickets++; came[me] = tickets; holder = me; judge_grant(me); mine = true
  :: else ->
     tickets++; came[me] = tickets; queue[waiting] = me; waiting++;
     j = 0; serve(me); mine = (holder == me)
  fi;
  j = 0
}

/* release.lua */
inline release(me) {
  purge();
  if
  :: holder == me -> holder = NOBODY
  :: else
  fi;
  serve(NOBODY)
}

/* expire.lua */
inline look() {
  purge();
  serve(NOBODY)
}

#else  /* The published protocol to the letter; keys of crashed holders expire. */

inline expire() {
  if
  :: holder != NOBODY && expired[holder] -> holder = NOBODY
  :: else
  fi
}

inline acquire(me, mine) {
  expire();
  if
  :: came[me] == 0 -> tickets++; came[me] = tickets
  :: else
  fi;
  if
  :: holder == NOBODY && waiting == 0 -> holder = me; judge_grant(me); mine = true
  :: holder == NOBODY && waiting != 0 ->
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
     who = queue[0];
     take_out(0);
     holder = who;
     judge_grant(who);
     if
     :: who == me -> mine = true
     :: else -> told[who] = true; told[me] = false
     fi;
     who = 0
  :: else -> told[me] = false
  fi
}

inline release(me) {
  expire();
  if
  :: holder == me ->
     holder = NOBODY;
     if
     :: waiting != 0 -> told[queue[0]] = true
     :: else
     fi
  :: else
  fi
}

#endif

inline crash(me) {
  crashes++;
  crashed[me] = true;
  came[me] = 0;
  told[me] = false;
  if
  :: closed[me] = true
  :: skip  /* a machine that lost its power says no goodbye */
  fi
}

proctype client(byte me) {
  byte rounds = 0;
  byte j = 0;
  byte k = 0;
  byte who = 0;
  bool mine = false;

  do
  :: rounds == ROUNDS -> break
  :: rounds < ROUNDS ->
     atomic { acquire(me, mine) };
     do
     :: mine -> break
     :: atomic { !mine && told[me] && !deaf[me] ->
          told[me] = false;
#ifdef PUBLISHED_PROTOCOL
          acquire(me, mine)
#else
          mine = true
#endif
        }
     :: atomic { !mine && deaf[me] -> deaf[me] = false; acquire(me, mine) }
     :: atomic { !mine && (holder != NOBODY && expired[holder]) ->
#ifdef PUBLISHED_PROTOCOL
          acquire(me, mine)  /* blpop ends with the lock-time */
#else
          look()
#endif
        }
     :: atomic { !mine && crashes < CRASHES -> crash(me); goto gone }
     od;
     told[me] = false;
     atomic { inside++; assert(inside == 1) };
     if
     :: atomic { inside--; release(me) }
     :: atomic { crashes < CRASHES -> inside--; crash(me); goto gone }
     fi;
     mine = false;
     rounds++
  od;
gone:
  finished[me] = true
}

/* Time, and the network. */
proctype world() {
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
       :: !crashed[i] && !finished[i] -> deaf[i] = true; told[i] = false
       :: else
       fi;
       i = 0 }
  od
}

init {
  byte n = 0;
  atomic {
    run world();
    do
    :: n < CLIENTS -> run client(n); n++
    :: else -> break
    od
  }
}
