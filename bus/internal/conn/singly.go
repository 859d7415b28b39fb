package conn

import (
	"context"
	"errors"
	"math"

	"golang.org/x/sync/errgroup"
)

// A direct get has the server send stored messages as they are, without their headers if
// the asker likes, to whatever subject the asker names: who may ask for one, and may store
// anything at all, can put anything anywhere. The answers to STREAM.MSG.GET go to any
// subject as well, but they are JSON, which is garbage wherever it lands. So accounts of
// workers and gateways have no right to direct gets, and read one message after the other.

const (
	// singleBatch bounds the messages that one call reads one after the other.
	singleBatch = 50
	// singleLasts is how many last messages are asked for at a time.
	singleLasts = 16
)

// singly is Get by one request for each message.
func singly(ctx context.Context, c *Conn, stream string, q *Query, do func(Stored) error) (a Answer, err error) {
	if len(q.Lasts) > 0 {
		return lastsSingly(ctx, c, stream, q.Lasts, do)
	}
	one := Query{Seq: q.Seq, Since: q.Since, Next: q.Next}
	size := 0
	for range min(q.Batch, singleBatch) {
		m, err := c.getOne(ctx, stream, q.Next, &one)
		if errors.Is(err, ErrNotFound) {
			return a, nil
		}
		if err == nil {
			err = do(m)
		}
		if err != nil {
			return a, err
		}
		a.Last = m.Seq
		one.Seq, one.Since = m.Seq+1, nil
		if size += len(m.Data); q.MaxBytes > 0 && size >= q.MaxBytes {
			break
		}
	}
	a.More = true // or not, as the next call finds out
	return a, nil
}

// lastsSingly calls do with the last message of each subject that has one, in
// the order of the subjects.
func lastsSingly(ctx context.Context, c *Conn, stream string, subjects []string, do func(Stored) error) (Answer, error) {
	found := make([]Stored, len(subjects))
	asking, ctx := errgroup.WithContext(ctx)
	asking.SetLimit(singleLasts)
	for i, subject := range subjects {
		asking.Go(func() error {
			m, err := c.getOne(ctx, stream, subject, &Query{last: subject})
			if errors.Is(err, ErrNotFound) {
				return nil
			}
			found[i] = m
			return err
		})
	}
	if err := asking.Wait(); err != nil {
		return Answer{}, err
	}
	for _, m := range found {
		if m.Seq == 0 {
			continue
		}
		if err := do(m); err != nil {
			return Answer{}, err
		}
	}
	return Answer{upTo: math.MaxUint64}, nil // the leader has them all
}
