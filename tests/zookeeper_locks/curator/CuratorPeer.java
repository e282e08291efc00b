// Locks of Apache Curator, for tests that meet them: java -cp … CuratorPeer.java HOST:PORT
//
// Each line of the input is done by the actor that it names, whose lock it is from then on; actors
// wait each for itself, as threads of a program would. Each is answered by one line:
//
//   ann mutex PATH        ann mutex
//   ann acquire           ann has it       when it has it
//   ann try               ann has it, or:  ann has it not
//   ann release           ann left
//
// Other kinds: read PATH, write PATH, permit PATH CAPACITY.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;

final class CuratorPeer {
  /** A permit, with the face of a lock. */
  private static final class Permit implements InterProcessLock {
    private final InterProcessSemaphoreV2 semaphore;
    private Lease lease;

    Permit(InterProcessSemaphoreV2 semaphore) {
      this.semaphore = semaphore;
    }

    @Override
    public void acquire() throws Exception {
      lease = semaphore.acquire();
    }

    @Override
    public boolean acquire(long time, TimeUnit unit) throws Exception {
      lease = semaphore.acquire(time, unit);
      return lease != null;
    }

    @Override
    public void release() {
      semaphore.returnLease(lease);
    }

    @Override
    public boolean isAcquiredInThisProcess() {
      return lease != null;
    }
  }

  private static InterProcessLock lockOf(CuratorFramework client, String[] words) {
    switch (words[1]) {
      case "mutex":
        return new InterProcessMutex(client, words[2]);
      case "read":
        return new InterProcessReadWriteLock(client, words[2]).readLock();
      case "write":
        return new InterProcessReadWriteLock(client, words[2]).writeLock();
      case "permit":
        return new Permit(new InterProcessSemaphoreV2(client, words[2], Integer.parseInt(words[3])));
      default:
        throw new IllegalArgumentException(words[1]);
    }
  }

  private static String execute(CuratorFramework client, Map<String, InterProcessLock> locks,
                             String[] words) throws Exception {
    switch (words[1]) {
      case "acquire":
        locks.get(words[0]).acquire();
        return "has it";
      case "try":
        return locks.get(words[0]).acquire(0, TimeUnit.MILLISECONDS) ? "has it" : "has it not";
      case "release":
        locks.get(words[0]).release();
        return "left";
      default:
        locks.put(words[0], lockOf(client, words));
        return words[1];
    }
  }

  public static void main(String[] arguments) throws Exception {
    CuratorFramework client = CuratorFrameworkFactory.newClient(arguments[0], new RetryOneTime(100));
    client.start();
    client.blockUntilConnected();
    System.out.println("ready");
    Map<String, InterProcessLock> locks = new java.util.concurrent.ConcurrentHashMap<>();
    // Curator's mutex belongs to the thread that took it.
    Map<String, ExecutorService> actors = new HashMap<>();
    BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      String[] words = line.split(" ");
      actors.computeIfAbsent(words[0], name -> Executors.newSingleThreadExecutor())
          .execute(() -> {
            String answer;
            try {
              answer = execute(client, locks, words);
            } catch (Exception problem) {
              answer = problem.toString();
            }
            System.out.println(words[0] + " " + answer);
          });
    }
    System.exit(0);
  }
}
