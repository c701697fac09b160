import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Two share groups read "share.in": key0 is accepted, key1 and key3 (a tombstone) are rejected, key2 is
 * released until its delivery limit. The broker then writes three dead letters per group: with the
 * record's key and value into "dlq.share.copy", as bare pointers into "dlq.share.pointer".
 */
final class ShareGroups {
  private static final int RECORDS = 4;
  private static final int DEAD = 3;

  public static void main(String[] args) throws Exception {
    try (Fixture fixture = new Fixture(args[0])) {
      Map<String, String> deadLetters = Map.of("errors.deadletterqueue.group.enable", "true");
      fixture.create(
          Fixture.topic("share.in", 1),
          Fixture.topic("dlq.share.copy", 2).configs(deadLetters),
          Fixture.topic("dlq.share.pointer", 1).configs(deadLetters));
      configure(fixture, "share-copy", Map.of(
          "errors.deadletterqueue.topic.name", "dlq.share.copy",
          "errors.deadletterqueue.copy.record.enable", "true"));
      configure(fixture, "share-pointer", Map.of("errors.deadletterqueue.topic.name", "dlq.share.pointer"));
      long copied = fixture.written("dlq.share.copy");
      long pointed = fixture.written("dlq.share.pointer");
      for (int i = 0; i < RECORDS; i++) {
        fixture.send("share.in", 0, "key" + i, i == 3 ? null : Fixture.bytes("value" + i));
      }
      consume(fixture, "share-copy");
      consume(fixture, "share-pointer");
      fixture.await("dlq.share.copy", copied + DEAD);
      fixture.await("dlq.share.pointer", pointed + DEAD);
    }
  }

  private static void configure(Fixture fixture, String group, Map<String, String> settings) throws Exception {
    List<AlterConfigOp> changes = new ArrayList<>();
    changes.add(set("share.auto.offset.reset", "earliest"));
    settings.forEach((name, value) -> changes.add(set(name, value)));
    ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
    fixture.admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
  }

  private static AlterConfigOp set(String name, String value) {
    return new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
  }

  private static void consume(Fixture fixture, String group) {
    Map<String, Object> config = Map.of(
        "bootstrap.servers", fixture.bootstrap, "group.id", group, "share.acknowledgement.mode", "explicit");
    long end = System.nanoTime() + Duration.ofSeconds(30).toNanos();
    try (var consumer = new KafkaShareConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      consumer.subscribe(List.of("share.in"));
      int settled = 0;
      while (settled < RECORDS) {
        if (System.nanoTime() > end) throw new IllegalStateException(group + " settled " + settled + " records in 30 s");
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
          AcknowledgeType answer = answer(record);
          consumer.acknowledge(record, answer);
          if (answer != AcknowledgeType.RELEASE || record.deliveryCount().get() >= 5) settled++;
        }
        consumer.commitSync();
      }
    }
  }

  private static AcknowledgeType answer(ConsumerRecord<byte[], byte[]> record) {
    return switch (new String(record.key())) {
      case "key0" -> AcknowledgeType.ACCEPT;
      case "key2" -> AcknowledgeType.RELEASE;
      default -> AcknowledgeType.REJECT;
    };
  }
}
