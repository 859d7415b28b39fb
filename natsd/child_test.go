package natsd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// childServe publishes for ever and prints each sequence after its ack.
func childServe(dir string) error {
	ctx := context.Background()
	s, err := Start(ctx, config(dir))
	if err != nil {
		return err
	}
	_, js, err := streamOn(ctx, s.Endpoint())
	if err != nil {
		return err
	}
	for i := 1; ; i++ {
		ack, err := js.Publish(ctx, "s.a", []byte(strconv.Itoa(i)))
		if err != nil {
			return err
		}
		fmt.Println(ack.Sequence)
	}
}

func childFind(dir string) error {
	ctx, cancel := wait.Bounded()
	defer cancel()
	e, err := Find(ctx, "", dir)
	if err != nil {
		return err
	}
	nc, js, err := streamOn(ctx, *e)
	if err != nil {
		return err
	}
	defer nc.Close()
	_, err = js.Publish(ctx, "s.from-second-process", nil)
	return err
}

func childStart(dir string) error {
	s, err := Start(context.Background(), config(dir))
	if err == nil {
		s.Shutdown()
	}
	fmt.Println(err)
	if held, ok := errors.AsType[*HeldError](err); ok {
		fmt.Println(held.PID)
	}
	return nil
}

// childReadOnly starts as a user who may not write to the directory.
func childReadOnly(dir string) error {
	if os.Geteuid() == 0 {
		if err := syscall.Setuid(65534); err != nil {
			return err
		}
	}
	_, err := Start(context.Background(), config(dir))
	fmt.Println(err)
	return nil
}

// childFull runs until no file may grow, which is what a full disk looks like.
func childFull(dir string) error {
	signal.Ignore(unix.SIGXFSZ)
	ctx, cancel := wait.Bounded()
	defer cancel()
	s, err := Start(ctx, config(dir))
	if err != nil {
		return err
	}
	defer s.Shutdown()
	nc, js, err := streamOn(ctx, s.Endpoint())
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := s.Healthy(ctx); err != nil {
		return fmt.Errorf("healthy before: %w", err)
	}
	limit := unix.Rlimit{Cur: 256 << 10, Max: unix.RLIM_INFINITY}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	publishing, stop := context.WithCancel(ctx)
	context.AfterFunc(ctx, stop)
	go func() {
		<-s.Failed()
		stop() // an answer will not come
	}()
	for err == nil {
		_, err = js.Publish(publishing, "s.a", make([]byte, 64<<10))
	}
	fmt.Println("publish:", err, ctx.Err())
	fmt.Println("healthy:", s.Healthy(ctx))
	limit.Cur = 1 << 10
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	fmt.Println("healthy:", s.Healthy(ctx))
	return nil
}
