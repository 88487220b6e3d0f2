package main

import (
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"
)

// What etcd spends: as bench/peers/account.hpp, for a peer that is one process.
type account struct {
	pid    int
	cgroup string // folder of the control group that holds it alone, or empty
}

// User and system time: in microseconds with a control group, otherwise in clock ticks.
func (a account) cpuTime() (time.Duration, error) {
	if a.cgroup != "" {
		used, err := number(filepath.Join(a.cgroup, "cpu.stat"), "usage_usec ")
		return time.Duration(used) * time.Microsecond, err
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.pid))
	if err != nil {
		return 0, err
	}
	// The second field, a name, may itself hold blanks; user and system time are the 14th and 15th.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	const tick = 10 * time.Millisecond // of every Linux that etcd runs on
	return time.Duration(user+system) * tick, nil
}

// Waits until etcd has done with what was sent to it. What it does on its own is taken for rest as
// long as it is less than a twentieth of a core.
func (a account) settledCPUTime() (time.Duration, error) {
	const pause = 20 * time.Millisecond
	previous, err := a.cpuTime()
	for waited := time.Duration(0); err == nil && waited < 5*time.Second; waited += pause {
		time.Sleep(pause)
		var now time.Duration
		if now, err = a.cpuTime(); now-previous < pause/20 {
			return now, err
		}
		previous = now
	}
	if err == nil {
		err = fmt.Errorf("etcd does not come to rest")
	}
	return 0, err
}

// Resident memory.
func (a account) residentBytes() (int64, error) {
	kibibytes, err := number(fmt.Sprintf("/proc/%d/smaps_rollup", a.pid), "Pss:")
	return kibibytes * 1024, err
}

// The same after a wait, once it does not fall any more.
func (a account) settledResidentBytes(patience time.Duration) (int64, error) {
	time.Sleep(patience)
	previous, err := a.residentBytes()
	for second := 0; err == nil && second < 10; second++ {
		time.Sleep(time.Second)
		var now int64
		now, err = a.residentBytes()
		if now >= previous {
			return now, err
		}
		previous = now
	}
	return previous, err
}

// The number that follows `key` at the start of a line.
func number(file, key string) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(line, key) {
			return strconv.ParseInt(strings.Fields(line[len(key):])[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %q", file, key)
}

// What the drivers print, as bench/load/timed_result.cpp does.
type figures struct {
	Operations int        `json:"operations"`
	Seconds    float64    `json:"seconds"`
	PerSecond  float64    `json:"per_second"`
	CPU        float64    `json:"cpu_us"`
	Busy       float64    `json:"server_busy"`
	P50        float64    `json:"p50_us"`
	P99        float64    `json:"p99_us"`
	Max        float64    `json:"max_us"`
	Histogram  [][2]int64 `json:"histogram"` // nanoseconds, count
	TLS        string     `json:"tls"`
}

func summed(latencies []time.Duration, elapsed, cpu time.Duration) (figures, error) {
	count := len(latencies)
	if count == 0 {
		return figures{}, fmt.Errorf("no operation was completed")
	}
	sort.Slice(latencies, func(i, j int) bool { return latencies[i] < latencies[j] })
	at := func(share float64) float64 {
		rank := int(math.Ceil(share*float64(count))) - 1
		return microseconds(latencies[max0(rank)])
	}
	return figures{
		Operations: count,
		Seconds:    elapsed.Seconds(),
		PerSecond:  float64(count) / elapsed.Seconds(),
		CPU:        microseconds(cpu) / float64(count),
		Busy:       cpu.Seconds() / elapsed.Seconds(),
		P50:        at(0.5),
		P99:        at(0.99),
		Max:        at(1),
		Histogram:  histogram(latencies),
	}, nil
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

func max0(i int) int {
	if i < 0 {
		return 0
	}
	return i
}

// The buckets of an HDR histogram of three digits: see bench/load/latencies.hpp.
func histogram(sorted []time.Duration) [][2]int64 {
	var buckets [][2]int64
	for _, value := range sorted {
		dropped := max0(bits.Len64(uint64(value)) - 11)
		highest := int64(value) | (int64(1)<<uint(dropped) - 1)
		if last := len(buckets) - 1; last < 0 || buckets[last][0] != highest {
			buckets = append(buckets, [2]int64{highest, 0})
		}
		buckets[len(buckets)-1][1]++
	}
	return buckets
}
