import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.kafka.annotation.BackOff;
import org.springframework.kafka.annotation.DltHandler;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.EnableKafkaRetryTopic;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.annotation.RetryableTopic;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.DeadLetterPublishingRecoverer;
import org.springframework.kafka.listener.DefaultErrorHandler;
import org.springframework.kafka.support.serializer.DelegatingByTypeSerializer;
import org.springframework.kafka.support.serializer.ErrorHandlingDeserializer;
import org.springframework.scheduling.TaskScheduler;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import org.springframework.util.backoff.FixedBackOff;

/**
 * Spring Kafka listeners that fail: "spring.orders" (an exception with a cause) and "spring.ints" (bytes
 * that do not deserialise) through the recoverer into "-dlt"; "spring.pay" through two retry topics into
 * its "-dlt".
 */
@Configuration
@EnableKafka
@EnableKafkaRetryTopic
public class Spring {
  private static String bootstrap;

  public static void main(String[] args) throws Exception {
    bootstrap = args[0];
    try (Fixture fixture = new Fixture(bootstrap)) {
      fixture.create(
          Fixture.topic("spring.orders", 2), Fixture.topic("spring.orders-dlt", 2),
          Fixture.topic("spring.ints", 1), Fixture.topic("spring.ints-dlt", 1), Fixture.topic("spring.pay", 1));
      long orders = fixture.written("spring.orders-dlt");
      long ints = fixture.written("spring.ints-dlt");
      long pay = fixture.written("spring.pay-dlt");
      try (var context = new AnnotationConfigApplicationContext(Spring.class)) {
        fixture.send("spring.orders", null, "k1", Fixture.bytes("good"));
        fixture.send("spring.orders", null, "k2", Fixture.bytes("bad-1"));
        fixture.send("spring.ints", null, "k3", Fixture.bytes("no integer"));
        fixture.send("spring.pay", null, "k4", Fixture.bytes("4111"));
        fixture.await("spring.orders-dlt", orders + 1);
        fixture.await("spring.ints-dlt", ints + 1);
        fixture.await("spring.pay-dlt", pay + 1);
      }
    }
    System.exit(0);
  }

  @KafkaListener(id = "orders-service", topics = "spring.orders", containerFactory = "recovering")
  void orders(String value) {
    if (value.startsWith("bad")) throw new IllegalStateException("cannot book " + value, new ArithmeticException("negative amount"));
  }

  @KafkaListener(id = "ints-service", topics = "spring.ints", containerFactory = "recoveringInts")
  void ints(Integer value) {}

  @RetryableTopic(attempts = "3", backOff = @BackOff(delay = 300, multiplier = 2))
  @KafkaListener(id = "pay-service", topics = "spring.pay")
  void pay(String value) {
    throw new IllegalArgumentException("card declined: " + value);
  }

  @DltHandler
  void dead(String value) {}

  @Bean
  KafkaAdmin admin() {
    return new KafkaAdmin(Map.of("bootstrap.servers", bootstrap));
  }

  @Bean
  KafkaTemplate<Object, Object> defaultRetryTopicKafkaTemplate() {
    Map<Class<?>, Serializer<?>> serializers = new LinkedHashMap<>();
    serializers.put(byte[].class, new ByteArraySerializer());
    serializers.put(String.class, new StringSerializer());
    var byType = new DelegatingByTypeSerializer(serializers, true);
    return new KafkaTemplate<>(new DefaultKafkaProducerFactory<>(Map.of("bootstrap.servers", bootstrap), byType, byType));
  }

  @Bean
  ConcurrentKafkaListenerContainerFactory<Object, Object> recovering(KafkaTemplate<Object, Object> template) {
    return listeners(consumer(), template);
  }

  @Bean
  ConcurrentKafkaListenerContainerFactory<Object, Object> recoveringInts(KafkaTemplate<Object, Object> template) {
    Map<String, Object> settings = consumer();
    settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ErrorHandlingDeserializer.class);
    settings.put(ErrorHandlingDeserializer.VALUE_DESERIALIZER_CLASS, IntegerDeserializer.class);
    return listeners(settings, template);
  }

  @Bean
  ConcurrentKafkaListenerContainerFactory<Object, Object> kafkaListenerContainerFactory() {
    var factory = new ConcurrentKafkaListenerContainerFactory<Object, Object>();
    factory.setConsumerFactory(new DefaultKafkaConsumerFactory<>(consumer()));
    return factory;
  }

  @Bean
  TaskScheduler scheduler() {
    return new ThreadPoolTaskScheduler();
  }

  private static ConcurrentKafkaListenerContainerFactory<Object, Object> listeners(
      Map<String, Object> settings, KafkaTemplate<Object, Object> template) {
    var factory = new ConcurrentKafkaListenerContainerFactory<Object, Object>();
    factory.setConsumerFactory(new DefaultKafkaConsumerFactory<>(settings));
    factory.setCommonErrorHandler(new DefaultErrorHandler(new DeadLetterPublishingRecoverer(template), new FixedBackOff(100, 2)));
    return factory;
  }

  private static Map<String, Object> consumer() {
    Map<String, Object> settings = new HashMap<>();
    settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
    settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
    settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
    settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, StringDeserializer.class);
    return settings;
  }
}
