"""A test of many cases fails where one of them does, and names those that do and no others."""

import pytest

from tests.offenders import every_case


def try_five_numbers():
    with every_case() as case:
        for number in range(5):
            with case("number", number):
                assert number != 1, "it is one"
                if number == 2:
                    raise ValueError("it is two")
                if number == 3:
                    with pytest.raises(TypeError):
                        pass


def test_every_case_that_fails_is_named_and_no_other():
    with pytest.raises(pytest.fail.Exception) as caught:
        try_five_numbers()
    lines = [line for line in str(caught.value).splitlines() if not line.startswith(" ")]
    assert [line.split(":")[0] for line in lines] == ["3 cases fail", "number, 1", "number, 2", "number, 3"]
    assert "it is one" in lines[1]
    assert lines[2].endswith("ValueError: it is two")


def test_nothing_fails_where_no_case_does():
    with every_case() as case, case("any"):
        pass


def test_an_interruption_is_not_taken_for_a_failure():
    with pytest.raises(KeyboardInterrupt), every_case() as case, case("any"):
        raise KeyboardInterrupt
