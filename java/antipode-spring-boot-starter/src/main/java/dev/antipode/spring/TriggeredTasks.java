package dev.antipode.spring;

import dev.antipode.shim.Logs;
import java.lang.reflect.Modifier;
import org.aopalliance.intercept.MethodInterceptor;
import org.springframework.aop.framework.AopConfigException;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.scheduling.Trigger;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/**
 * What a {@code ThreadPoolTaskScheduler} runs by a trigger, as {@code @Scheduled(cron = …)} does, is a {@link ScheduledTask}:
 * its decorator alone would begin each run inside the one before, and one that the application makes has none.
 */
final class TriggeredTasks implements BeanPostProcessor {
  @Override
  public Object postProcessAfterInitialization(Object bean, String name) {
    if (!(bean instanceof ThreadPoolTaskScheduler) || Modifier.isFinal(bean.getClass().getModifiers())) {
      return bean;
    }
    ProxyFactory scheduler = new ProxyFactory(bean);
    scheduler.setProxyTargetClass(true); // applications ask for the class
    scheduler.addAdvice((MethodInterceptor) call -> {
      Object[] arguments = call.getArguments();
      if (call.getMethod().getName().equals("schedule") && arguments.length == 2 && arguments[1] instanceof Trigger
          && arguments[0] instanceof Runnable task) {
        arguments[0] = new ScheduledTask(task);
      }
      return call.proceed();
    });
    try {
      return scheduler.getProxy(bean.getClass().getClassLoader());
    } catch (AopConfigException | UnsupportedOperationException error) { // a class that cannot be extended, a native image
      Logs.info("AP517", name, "what " + name + " runs by a trigger has no scope of its own (" + error + ")");
      return bean;
    }
  }
}
