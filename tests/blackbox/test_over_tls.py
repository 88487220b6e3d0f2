"""Tests of other files again, over mutual TLS: those whose subject TLS could change. What they use of
fixtures is replaced here; each test is the same function as over plain TCP."""

# ruff: noqa: F401, F811
import pytest

from test_close import (
    test_acquire_and_leave_in_one_breath,
    test_connection_that_leaves_inside_its_acquire,
    test_connection_that_never_spoke_may_half_close,
    test_end_of_stream_follows_the_error_at_once,
    test_error_arrives_despite_unread_input,
    test_error_arrives_when_the_rest_comes_later,
    test_frames_are_not_held_back,
    test_half_close_is_answered_with_the_end,
    test_linger_delays_nobody,
    test_linger_ends_at_the_io_timeout,
    test_linger_is_over_when_the_peer_has_closed,
    test_linger_reads_no_more_than_its_bound,
)
from test_handshake import (
    test_acquire_a_byte_at_a_time,
    test_acquire_cut_at_every_byte,
    test_empty_name_is_refused,
    test_long_name_is_refused_without_waiting_for_it,
    test_order_of_checks,
    test_refused_claims_leave_no_trace,
    test_second_acquire_in_the_same_segment,
    test_second_acquire_is_refused_at_its_first_byte,
    test_unknown_byte_of_a_waiter_ends_only_the_waiter,
    test_version_is_refused_as_soon_as_it_is_read,
    test_version_is_refused_when_it_arrives_alone,
    test_what_follows_a_refusal_is_not_answered,
)
from test_io_timeout import (
    limited,
    test_acquire_a_byte_at_a_time_is_not_given_longer,
    test_acquire_in_two_parts_within_the_limit,
    test_blocked_session_that_is_closed_frees_its_lock,
    test_blocked_write_ends_at_the_io_timeout_even_without_more_input,
    test_lease_of_a_blocked_session_runs_on,
    test_peer_that_never_reads,
    test_refused_peer_that_never_reads_is_not_waited_for,
    test_silence_of_a_session_is_not_bounded,
)
from test_lease import (
    test_expiry_of_many_leaves_nothing_behind,
    test_heartbeat_starts_the_whole_lease_again,
    test_last_seen_is_read_after_the_receive,
    test_many_short_pauses_lose_nobody,
    test_next_owner_is_granted_when_the_lease_is_over,
    test_silent_owner_expires_at_its_lease,
    test_silent_sessions_are_over_after_a_pause,
)
from test_queue import (
    test_a_lock_without_claims_is_forgotten,
    test_dead_waiter_costs_nothing,
    test_names_are_compared_byte_for_byte,
    test_owner_and_the_whole_front_of_the_queue_leave_together,
    test_silent_waiters_expire_in_parallel,
    test_those_who_leave_the_queue_do_not_disturb_it,
    test_waiters_are_served_in_order,
)
from test_replies import (
    test_each_heartbeat_is_answered_with_the_state,
    test_error_before_a_fin,
    test_farewell_of_an_admitted_session_after_a_pause,
    test_heartbeats_in_the_segment_of_the_acquire_are_each_answered,
    test_messages_before_a_fin_are_answered_in_order,
    test_messages_of_a_waiter_before_a_fin,
    test_promotion_is_pushed_at_once_without_any_heartbeat,
    test_promotion_of_one_who_left_a_heartbeat_behind,
    test_promotion_races_with_heartbeats_in_flight,
    test_ten_thousand_heartbeats_at_once,
    test_waiters_are_not_told_of_others,
)
from test_shutdown import (
    test_delay_is_service_as_ever,
    test_end_waits_for_nobody_when_all_have_left,
    test_everyone_is_told_and_nobody_is_promoted,
    test_messages_before_the_end_are_answered_before_it,
    test_nobody_is_promoted_while_owners_leave,
)


@pytest.fixture
def threads():
    return "2"


@pytest.fixture
def start_server(start_server, mtls_files):
    def start(*flags, **options):
        return start_server(*flags, tls=mtls_files, **options)

    return start
