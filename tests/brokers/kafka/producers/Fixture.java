import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** What the programs of this folder share: topics, source records, and waiting for dead letters. */
final class Fixture implements AutoCloseable {
  /** The timestamp of every source record, so that a test can tell "kept" from "now". */
  static final long SENT = 1_700_000_000_000L;

  final String bootstrap;
  final Admin admin;
  private final KafkaProducer<byte[], byte[]> producer;

  Fixture(String bootstrap) {
    this.bootstrap = bootstrap;
    Map<String, Object> config = Map.of("bootstrap.servers", bootstrap);
    admin = Admin.create(config);
    producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
  }

  /** Creates those of the topics that are missing. */
  void create(NewTopic... topics) throws Exception {
    Set<String> present = admin.listTopics().names().get();
    List<NewTopic> missing = new ArrayList<>();
    for (NewTopic topic : topics) if (!present.contains(topic.name())) missing.add(topic);
    admin.createTopics(missing).all().get();
  }

  static NewTopic topic(String name, int partitions) {
    return new NewTopic(name, partitions, (short) 1);
  }

  /** Sends one record with the header "trace", and waits for the broker to confirm it. */
  void send(String topic, Integer partition, String key, byte[] value) throws Exception {
    ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, partition, SENT, bytes(key), value);
    record.headers().add("trace", bytes("trace-" + key));
    producer.send(record).get();
  }

  static byte[] bytes(String text) {
    return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
  }

  /** The number of records that a topic was ever given. */
  long written(String topic) throws Exception {
    if (!admin.listTopics().names().get().contains(topic)) return 0;
    Map<TopicPartition, OffsetSpec> ends =
        admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().stream()
            .collect(Collectors.toMap(p -> new TopicPartition(topic, p.partition()), p -> OffsetSpec.latest()));
    return admin.listOffsets(ends).all().get().values().stream().mapToLong(o -> o.offset()).sum();
  }

  /** Waits until the topic was given at least this many records, and prints how many it has. */
  void await(String topic, long records) throws Exception {
    long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
    while (written(topic) < records) {
      if (System.nanoTime() > end) throw new IllegalStateException(topic + " has " + written(topic) + " of " + records + " dead letters after 60 s");
      Thread.sleep(100);
    }
    System.out.println(topic + " " + written(topic));
  }

  @Override
  public void close() {
    producer.close();
    admin.close();
  }
}
