"""What is left in a robot's battery, by its reports."""

from fieldbo.testing import small_mission
from fieldbo.vehicles.remote.gauge import BatteryGauge
from fieldbo.vehicles.remote.link import BatteryReport
from fieldbo.vehicles.remote.settings import Battery


def gauge_of(battery: float) -> BatteryGauge:
    mission = small_mission(battery=battery)
    return BatteryGauge(mission, 0, Battery(accuracy=1.0), 10.0, lambda kind, doubt: True)


def take(gauge: BatteryGauge, amounts: list[float], unknown: float) -> float | None:
    """Take reports, one a second; return what is left then."""
    for amount in amounts:
        now_s = max(gauge.measured_s, 0.0) + 1.0
        gauge.take(BatteryReport(amount=amount), now_s, unknown)
    return gauge.remaining(gauge.measured_s)


class TestALostOrder:
    """What it may have taken is written off once, while old reports arrive late again and again."""

    LATE = (95.0, 95.0)  # a rise that is confirmed, but not credited

    def test_is_written_off_once(self):
        gauge = gauge_of(100.0)

        assert take(gauge, [90.0, *self.LATE], unknown=20.0) == 70.0
        assert take(gauge, [90.0, *self.LATE], unknown=20.0) == 65.0

    def test_is_written_off_beside_the_next_one(self):
        gauge = gauge_of(100.0)
        take(gauge, [90.0, *self.LATE], unknown=20.0)

        assert take(gauge, [90.0, *self.LATE], unknown=30.0) == 55.0

    def test_that_was_settled_does_not_count_for_the_next_one(self):
        gauge = gauge_of(100.0)
        take(gauge, [90.0, *self.LATE], unknown=20.0)

        assert take(gauge, [90.0], unknown=0.0) == 65.0
        assert take(gauge, [*self.LATE], unknown=20.0) == 45.0

    def test_counts_anew_for_a_new_battery(self):
        gauge = gauge_of(100.0)
        take(gauge, [90.0, *self.LATE], unknown=20.0)
        gauge.replace()

        assert take(gauge, [90.0, *self.LATE], unknown=20.0) == 70.0

    def test_is_written_off_although_only_its_loss_showed_that_counting_began_during_it(self):
        gauge = gauge_of(100.0)
        take(gauge, [60.0], unknown=0.0)
        began = gauge.mark(gauge.measured_s)
        take(gauge, [92.0, 92.0], unknown=0.0)
        gauge.lose(began, 15.0)

        assert take(gauge, [100.0, 100.0], unknown=15.0) == 45.0

    def test_is_written_off_beside_what_the_order_under_way_took(self):
        gauge = gauge_of(100.0)
        take(gauge, [60.0], unknown=20.0)
        began = gauge.mark(gauge.measured_s)
        take(gauge, [*self.LATE, 94.0], unknown=20.0)
        gauge.charge(5.0, began, 20.0)

        assert gauge.remaining(gauge.measured_s) == 60.0 - 20.0 - 5.0

    def test_that_turns_out_done_is_not_charged_once_more(self):
        gauge = gauge_of(100.0)
        take(gauge, [60.0, 90.0, 90.0], unknown=20.0)
        gauge.charge(15.0, None, 0.0)

        assert take(gauge, [*self.LATE], unknown=0.0) == 40.0
