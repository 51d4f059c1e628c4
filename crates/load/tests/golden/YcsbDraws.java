import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Properties;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.LongSupplier;
import site.ycsb.Utils;
import site.ycsb.generator.AcknowledgedCounterGenerator;
import site.ycsb.generator.ScrambledZipfianGenerator;
import site.ycsb.generator.ZipfianGenerator;
import site.ycsb.measurements.Measurements;
import site.ycsb.workloads.CoreWorkload;

/**
 * Writes what YCSB's own generators draw, and of which uniform numbers, for a test that has to draw the same.
 *
 * <p>A section opens with its name and parameters between brackets. Each line after it is a draw: the uniform numbers
 * it consumed, as multiples of 2^-53 in hexadecimal and with commas between them, and what came of them. How YCSB seeds
 * its random numbers is of no matter, so this gives each section a state of its own and looks what was consumed.
 */
public final class YcsbDraws {
  private static final int DRAWS = 1000;
  private static final Field STATE = field(Thread.class, "threadLocalRandomSeed");

  private YcsbDraws() {}

  /** Writes all sections to the standard output. */
  public static void main(String[] args) throws ReflectiveOperationException, site.ycsb.WorkloadException {
    System.out.println("# Made by YcsbDraws.java from site.ycsb:core:0.17.0; see README.md.");
    ThreadLocalRandom.current();
    hashes();
    ZipfianGenerator plain = new ZipfianGenerator(1000);
    section("zipfian items=1000 " + parameters(plain), 1);
    draws(plain::nextValue);
    for (long items : new long[] {1000, 100_000, 1_000_000}) {
      ScrambledZipfianGenerator scrambled = new ScrambledZipfianGenerator(items);
      Object inner = field(ScrambledZipfianGenerator.class, "gen").get(scrambled);
      section("scrambled items=" + items + " " + parameters((ZipfianGenerator) inner), items);
      draws(scrambled::nextValue);
    }
    workload(1000, 20_000, "0");
    workload(1000, 20_000, "0.05");
    workload(3, 17, "0.3");
  }

  private static void hashes() {
    System.out.println("[hash]");
    for (long value = 1; value > 0; value *= 7) {
      System.out.println(value + " " + Utils.hash(value));
    }
  }

  /** A whole workload's choice of keys, with an acknowledged insert after every tenth; one more column: which exist. */
  private static void workload(int records, int operations, String inserts)
      throws ReflectiveOperationException, site.ycsb.WorkloadException {
    Properties properties = new Properties();
    properties.setProperty("recordcount", String.valueOf(records));
    properties.setProperty("operationcount", String.valueOf(operations));
    properties.setProperty("insertproportion", inserts);
    properties.setProperty("requestdistribution", "zipfian");
    Measurements.setProperties(properties);
    CoreWorkload workload = new CoreWorkload();
    workload.init(properties);
    Method next = CoreWorkload.class.getDeclaredMethod("nextKeynum");
    next.setAccessible(true);
    AcknowledgedCounterGenerator sequence = (AcknowledgedCounterGenerator)
        field(CoreWorkload.class, "transactioninsertkeysequence").get(workload);
    section("workload records=" + records + " operations=" + operations + " inserts=" + inserts, records + operations);
    for (int draw = 1; draw <= DRAWS; draw++) {
      long before = STATE.getLong(Thread.currentThread());
      long key = ((Number) next.invoke(workload)).longValue();
      System.out.println(consumed(before) + " " + key + " " + (sequence.lastValue() + 1));
      if (draw % 10 == 0 && !inserts.equals("0")) {
        sequence.acknowledge(sequence.nextValue());
      }
    }
  }

  private static void section(String title, long seed) throws ReflectiveOperationException {
    System.out.println("[" + title + "]");
    STATE.setLong(Thread.currentThread(), seed);
  }

  private static void draws(LongSupplier generator) throws ReflectiveOperationException {
    for (int draw = 0; draw < DRAWS; draw++) {
      long before = STATE.getLong(Thread.currentThread());
      long item = generator.getAsLong();
      System.out.println(consumed(before) + " " + item);
    }
  }

  /** The uniform numbers that lead from this state to the present one. */
  private static String consumed(long before) throws ReflectiveOperationException {
    long after = STATE.getLong(Thread.currentThread());
    STATE.setLong(Thread.currentThread(), before);
    StringBuilder numbers = new StringBuilder();
    while (STATE.getLong(Thread.currentThread()) != after) {
      double number = ThreadLocalRandom.current().nextDouble();
      numbers.append(numbers.length() > 0 ? "," : "").append(Long.toHexString((long) (number * 0x1p53)));
    }
    return numbers.toString();
  }

  /** What the generator computed beforehand, to the last bit. */
  private static String parameters(ZipfianGenerator generator) throws ReflectiveOperationException {
    StringBuilder text = new StringBuilder();
    for (String name : new String[] {"zetan", "alpha", "eta"}) {
      long bits = Double.doubleToRawLongBits(field(ZipfianGenerator.class, name).getDouble(generator));
      text.append(name).append('=').append(Long.toHexString(bits)).append(' ');
    }
    return text.toString().trim();
  }

  private static Field field(Class<?> owner, String name) {
    try {
      Field field = owner.getDeclaredField(name);
      field.setAccessible(true);
      return field;
    } catch (NoSuchFieldException error) {
      throw new IllegalStateException(owner + " has no " + name, error);
    }
  }
}
