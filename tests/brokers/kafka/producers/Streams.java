import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.LogAndContinueExceptionHandler;
import org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;

/**
 * A Streams application from "streams.in" to "streams.out". Two records die into "streams.dlq": one that
 * is no integer (in deserialisation) and the number 13 (in processing). args: bootstrap, a state folder.
 */
final class Streams {
  private static final int DEAD = 2;

  public static void main(String[] args) throws Exception {
    try (Fixture fixture = new Fixture(args[0])) {
      fixture.create(Fixture.topic("streams.in", 2), Fixture.topic("streams.out", 2), Fixture.topic("streams.dlq", 1));
      long before = fixture.written("streams.dlq");
      byte[][] values = {{0, 0, 0, 7}, Fixture.bytes("no integer"), {0, 0, 0, 13}, null};
      for (int i = 0; i < values.length; i++) fixture.send("streams.in", 1, "k" + i, values[i]);
      try (KafkaStreams streams = new KafkaStreams(topology().build(), settings(args))) {
        streams.start();
        fixture.await("streams.dlq", before + DEAD);
      }
    }
  }

  private static StreamsBuilder topology() {
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream("streams.in", Consumed.with(Serdes.String(), Serdes.Integer()))
        .mapValues(Streams::process)
        .to("streams.out", Produced.with(Serdes.String(), Serdes.Integer()));
    return builder;
  }

  private static Integer process(Integer value) {
    if (value != null && value == 13) throw new IllegalStateException("13 is unlucky", new ArithmeticException("cause"));
    return value;
  }

  private static Properties settings(String[] args) {
    Properties settings = new Properties();
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "streams-app");
    settings.put(StreamsConfig.STATE_DIR_CONFIG, args[1]);
    settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, "1");
    settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    settings.put(StreamsConfig.ERRORS_DEAD_LETTER_QUEUE_TOPIC_NAME_CONFIG, "streams.dlq");
    settings.put(StreamsConfig.DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueExceptionHandler.class);
    settings.put(StreamsConfig.PROCESSING_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueProcessingExceptionHandler.class);
    return settings;
  }
}
