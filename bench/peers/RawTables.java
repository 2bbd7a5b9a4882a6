package joinery.peers;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import org.apache.flink.api.connector.sink2.Sink;
import org.apache.flink.api.connector.sink2.SinkWriter;
import org.apache.flink.api.connector.sink2.WriterInitContext;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.table.connector.ChangelogMode;
import org.apache.flink.table.connector.sink.DynamicTableSink;
import org.apache.flink.table.connector.sink.SinkV2Provider;
import org.apache.flink.table.connector.source.DynamicTableSource;
import org.apache.flink.table.connector.source.ScanTableSource;
import org.apache.flink.table.connector.source.SourceProvider;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.factories.DynamicTableFactory;
import org.apache.flink.table.factories.DynamicTableSinkFactory;
import org.apache.flink.table.factories.DynamicTableSourceFactory;
import org.apache.flink.table.factories.FactoryUtil;
import org.apache.flink.table.types.DataType;

/**
 * Two connectors for Flink SQL. `raw-records` reads a file of packed 64-byte records (ts us, key, 48 bytes) as rows
 * (place in the file, ts, key, payload, time in ms); reader r of n takes the records r, r + n, r + 2n ..., as if the
 * stream came in n partitions. `pair-count` takes every result row, counts it, and writes pairs, checksum and seconds
 * as JSON once the last writer has seen the end. Seconds are from the first record read to the last result taken.
 */
public final class RawTables {
  private static final int RECORD_BYTES = 64;
  private static final int PAYLOAD_BYTES = 48;

  private static final ConfigOption<String> PATH = ConfigOptions.key("path").stringType().noDefaultValue();
  private static final ConfigOption<Long> ROWS = ConfigOptions.key("rows").longType().noDefaultValue();
  private static final ConfigOption<Integer> READERS = ConfigOptions.key("readers").intType().noDefaultValue();
  private static final ConfigOption<Integer> WRITERS = ConfigOptions.key("writers").intType().noDefaultValue();

  private RawTables() {}

  private static ReadableConfig optionsOf(DynamicTableFactory factory, DynamicTableFactory.Context context) {
    return FactoryUtil.createTableFactoryHelper(factory, context).getOptions();
  }

  /** What all readers and writers of a job share; every job has a class loader of its own, hence its own totals. */
  private static final class Totals {
    private static long startNs, pairs, checksum;
    private static int ended;

    static synchronized void start() {
      if (startNs == 0) startNs = System.nanoTime();
    }

    static synchronized void end(long itsPairs, long itsChecksum, int writers, String path) throws IOException {
      pairs += itsPairs;
      checksum += itsChecksum;
      if (++ended < writers) return;
      double seconds = (System.nanoTime() - startNs) / 1e9;
      String said = "{\"pairs\": " + pairs + ", \"checksum\": " + checksum + ", \"seconds\": " + seconds + "}";
      Files.writeString(Path.of(path), said);
    }
  }

  public static final class SourceFactory implements DynamicTableSourceFactory {
    @Override
    public String factoryIdentifier() {
      return "raw-records";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
      return Set.of(PATH, ROWS, READERS);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
      return Set.of();
    }

    @Override
    public DynamicTableSource createDynamicTableSource(Context context) {
      ReadableConfig options = optionsOf(this, context);
      Records records = new Records(options.get(PATH), options.get(ROWS), options.get(READERS));
      return new Source(records, context.getPhysicalRowDataType());
    }
  }

  private record Source(Records records, DataType type) implements ScanTableSource {
    @Override
    public ChangelogMode getChangelogMode() {
      return ChangelogMode.insertOnly();
    }

    @Override
    public ScanRuntimeProvider getScanRuntimeProvider(ScanContext context) {
      RateLimiterStrategy unlimited = RateLimiterStrategy.noOp();
      return SourceProvider.of(
          new DataGeneratorSource<RowData>(records, records.rows, unlimited, context.createTypeInformation(type)));
    }

    @Override
    public DynamicTableSource copy() {
      return new Source(records, type);
    }

    @Override
    public String asSummaryString() {
      return "packed records of " + records.path;
    }
  }

  /** The row of an index; reader r is given the indexes [r * rows / readers, (r + 1) * rows / readers). */
  private static final class Records implements GeneratorFunction<Long, RowData> {
    private final String path;
    private final long rows;
    private final int readers;
    private transient ByteBuffer file;

    Records(String path, long rows, int readers) {
      this.path = path;
      this.rows = rows;
      this.readers = readers;
    }

    @Override
    public void open(SourceReaderContext context) throws IOException {
      try (FileChannel channel = FileChannel.open(Path.of(path))) {
        file = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size()).order(ByteOrder.LITTLE_ENDIAN);
      }
    }

    @Override
    public RowData map(Long index) {
      long share = rows / readers, reader = index / share, nth = index % share;
      if (nth == 0) Totals.start();
      long place = nth * readers + reader;
      int at = Math.toIntExact(place * RECORD_BYTES);
      long us = file.getLong(at);
      byte[] payload = new byte[PAYLOAD_BYTES];
      file.get(at + RECORD_BYTES - PAYLOAD_BYTES, payload);
      TimestampData time = TimestampData.fromEpochMillis(Math.floorDiv(us, 1000L));
      return GenericRowData.of(place, us, file.getLong(at + Long.BYTES), payload, time);
    }
  }

  public static final class SinkFactory implements DynamicTableSinkFactory {
    @Override
    public String factoryIdentifier() {
      return "pair-count";
    }

    @Override
    public Set<ConfigOption<?>> requiredOptions() {
      return Set.of(PATH, WRITERS);
    }

    @Override
    public Set<ConfigOption<?>> optionalOptions() {
      return Set.of();
    }

    @Override
    public DynamicTableSink createDynamicTableSink(Context context) {
      ReadableConfig options = optionsOf(this, context);
      return new Target(new Counting(options.get(PATH), options.get(WRITERS)));
    }
  }

  private record Target(Counting counting) implements DynamicTableSink {
    @Override
    public ChangelogMode getChangelogMode(ChangelogMode requested) {
      return ChangelogMode.insertOnly();
    }

    @Override
    public SinkRuntimeProvider getSinkRuntimeProvider(Context context) {
      return SinkV2Provider.of(counting);
    }

    @Override
    public DynamicTableSink copy() {
      return new Target(counting);
    }

    @Override
    public String asSummaryString() {
      return "number and checksum of the pairs";
    }
  }

  private record Counting(String path, int writers) implements Sink<RowData> {
    @Override
    public SinkWriter<RowData> createWriter(WriterInitContext context) {
      return new Counter(this);
    }
  }

  /** Takes rows (id1, id2, key, ts1, ts2, payload1, payload2); it reads both payloads, so that none is left out. */
  private static final class Counter implements SinkWriter<RowData> {
    private final Counting counting;
    private long pairs, checksum, bytes;

    Counter(Counting counting) {
      this.counting = counting;
    }

    @Override
    public void write(RowData row, Context context) {
      pairs++;
      checksum += (row.getLong(0) * 1000003L + row.getLong(1) * 7919L) % 1000000007L;
      bytes += row.getBinary(5).length + row.getBinary(6).length;
    }

    @Override
    public void flush(boolean atEnd) throws IOException {
      if (!atEnd) return;
      if (bytes != pairs * 2 * PAYLOAD_BYTES) throw new IOException("found " + bytes + " bytes of " + pairs + " pairs");
      Totals.end(pairs, checksum, counting.writers, counting.path);
    }

    @Override
    public void close() {}
  }
}
