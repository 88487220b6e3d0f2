package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"
	"go.etcd.io/etcd/etcdserver/etcdserverpb"
)

const (
	leaseSeconds = 3600
	holdTime     = 5 * time.Millisecond // see relay in bench/peers/driver.cpp
)

// One client with a connection of its own, and a mutex in a session of its own: the recipe of the
// package concurrency.
type claim struct {
	client  *clientv3.Client
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func newClaim(server, name string) (*claim, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server}, DialTimeout: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(leaseSeconds))
	if err != nil {
		client.Close()
		return nil, err
	}
	return &claim{client, session, concurrency.NewMutex(session, "/"+name)}, nil
}

func (c *claim) end() error {
	err := c.session.Close() // revokes the lease
	if closing := c.client.Close(); err == nil {
		err = closing
	}
	return err
}

func lockName(serial int) string { return fmt.Sprintf("bench/lock-%09d", serial) }

// Repeats the operation in so many goroutines, each told its number.
func repeat(side int, duration time.Duration, operation func(int) error) ([]time.Duration, error) {
	end := time.Now().Add(duration)
	var guard sync.Mutex
	var all []time.Duration
	err := sideBySide(side, func(which int) error {
		var own []time.Duration
		for now := time.Now(); now.Before(end); {
			started := now
			if err := operation(which); err != nil {
				return err
			}
			now = time.Now()
			own = append(own, now.Sub(started))
		}
		guard.Lock()
		defer guard.Unlock()
		all = append(all, own...)
		return nil
	})
	return all, err
}

func sideBySide(side int, work func(int) error) error {
	failures := make(chan error, side)
	for i := 0; i < side; i++ {
		go func(which int) { failures <- work(which) }(i)
	}
	var failure error
	for i := 0; i < side; i++ {
		if err := <-failures; err != nil {
			failure = err
		}
	}
	return failure
}

func timed(o options, side int, operation func(int) error) (figures, error) {
	if _, err := repeat(side, seconds(o.warmUp), operation); err != nil {
		return figures{}, err
	}
	before, err := o.spent.settledCPUTime()
	if err != nil {
		return figures{}, err
	}
	started := time.Now()
	latencies, err := repeat(side, seconds(o.seconds), operation)
	if err != nil {
		return figures{}, err
	}
	elapsed := time.Since(started)
	after, err := o.spent.settledCPUTime()
	if err != nil {
		return figures{}, err
	}
	return summed(latencies, elapsed, after-before)
}

func seconds(count float64) time.Duration { return time.Duration(count * float64(time.Second)) }

// A new connection, a session with its lease, lock, unlock, the end of all that.
func runConnect(o options) (figures, error) {
	var serial int64
	return timed(o, o.concurrent, func(int) error {
		one, err := newClaim(o.server, lockName(int(atomic.AddInt64(&serial, 1))))
		if err != nil {
			return err
		}
		if err := one.mutex.Lock(context.Background()); err != nil {
			return err
		}
		if err := one.mutex.Unlock(context.Background()); err != nil {
			return err
		}
		return one.end()
	})
}

// Owners keep their leases alive, over a stream each as the client library has it. The library
// itself decides when to send; here the stream is used directly, so that it can be kept busy.
func runHeartbeat(o options) (figures, error) {
	streams := make([]etcdserverpb.Lease_LeaseKeepAliveClient, o.connections)
	leases := make([]int64, o.connections)
	for i := range streams {
		one, err := newClaim(o.server, lockName(i))
		if err != nil {
			return figures{}, err
		}
		if err := one.mutex.Lock(context.Background()); err != nil {
			return figures{}, err
		}
		leases[i] = int64(one.session.Lease())
		rpc := etcdserverpb.NewLeaseClient(one.client.ActiveConnection())
		if streams[i], err = rpc.LeaseKeepAlive(context.Background()); err != nil {
			return figures{}, err
		}
	}
	side := o.outstanding
	if side > o.connections {
		side = o.connections
	}
	next := make([]int, side)
	return timed(o, side, func(which int) error {
		i := which + next[which]*side
		if next[which]++; which+next[which]*side >= o.connections {
			next[which] = 0
		}
		if err := streams[i].Send(&etcdserverpb.LeaseKeepAliveRequest{ID: leases[i]}); err != nil {
			return err
		}
		answer, err := streams[i].Recv()
		if err == nil && answer.TTL <= 0 {
			err = fmt.Errorf("the lease has expired")
		}
		return err
	})
}

// Clients that want one lock; who gets it takes the time since it was given back.
func runHandover(o options) (figures, error) {
	var (
		over             int32
		guard            sync.Mutex // what follows belongs to the owner
		rounds           int
		latencies        []time.Duration
		started, freed   time.Time
		elapsed          time.Duration
		before, spentCPU time.Duration
	)
	own := func(now time.Time) (err error) {
		guard.Lock()
		defer guard.Unlock()
		if rounds > o.waiters { // the first so many do not count
			latencies = append(latencies, now.Sub(freed))
		}
		time.Sleep(holdTime)
		if rounds == o.waiters {
			started = time.Now()
			before, err = o.spent.cpuTime()
		}
		if rounds == o.waiters+o.rounds {
			elapsed = time.Since(started)
			spentCPU, err = o.spent.cpuTime()
			spentCPU -= before
			atomic.StoreInt32(&over, 1)
		}
		rounds++
		freed = time.Now()
		return err
	}
	err := sideBySide(o.waiters+1, func(int) error {
		one, err := newClaim(o.server, lockName(0))
		if err != nil {
			return err
		}
		for atomic.LoadInt32(&over) == 0 {
			if err := one.mutex.Lock(context.Background()); err != nil {
				return err
			}
			now := time.Now()
			if atomic.LoadInt32(&over) == 0 {
				if err := own(now); err != nil {
					return err
				}
			}
			if err := one.mutex.Unlock(context.Background()); err != nil {
				return err
			}
		}
		return one.end()
	})
	if err != nil {
		return figures{}, err
	}
	return summed(latencies, elapsed, spentCPU)
}

type sample struct {
	Sessions      int   `json:"sessions"`
	ResidentBytes int64 `json:"resident_bytes"`
}

type samples struct {
	Samples []sample `json:"samples"`
	TLS     string   `json:"tls"`
}

// Waiters of one lock, and what etcd keeps of each.
func runMemory(o options) (samples, error) {
	var result samples
	count := 0
	take := func(resident int64, err error) error {
		result.Samples = append(result.Samples, sample{count, resident})
		return err
	}
	if err := take(o.spent.residentBytes()); err != nil {
		return result, err
	}
	for _, size := range o.sizes {
		for ; count < size; count++ {
			one, err := newClaim(o.server, lockName(0))
			if err != nil {
				return result, err
			}
			if count == 0 {
				if err := one.mutex.Lock(context.Background()); err != nil {
					return result, err
				}
			} else {
				go one.mutex.Lock(context.Background()) // until the process ends
			}
		}
		if err := take(o.spent.settledResidentBytes(seconds(o.settle))); err != nil {
			return result, err
		}
	}
	return result, nil
}
