"""A true report holds, and one that was changed anywhere does not: estimate, certificate, text, cost or ledger."""

import dataclasses
import re
import shutil

import pytest

import kngjax as kng
from kngjax.study.reports.checking import _are_near, _read, check_report, report_of
from kngjax.study.reports.markup import document_in
from kngjax.study.reports.page_contents import numbers_of, seal_of
from kngjax.study.reports.release_page import report
from tests.study.reports.pages_made import LEVELS, NAMED, paid_study, require_a_good_page


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The page of a histogram, its ledger, and its results; another release was paid for before."""
    folder = tmp_path_factory.mktemp("made")
    study, ledger = paid_study(folder)
    study.mean(NAMED, epsilon=0.25)
    results = study.histogram("region", epsilon=0.5)
    results.report(folder / "report.html", ledger=ledger)
    return (folder / "report.html").read_text(encoding="utf-8"), ledger, results


def test_a_true_report_holds(made):
    page, ledger, _ = made
    found = check_report(page, ledger)
    assert not found.differs
    assert not found.open
    assert found.explain().endswith("The report holds.")
    without = check_report(page)
    assert not without.differs
    assert "give --ledger" in without.open[0]
    assert without.explain().endswith("agrees with itself; whether its releases were made is not checked.")
    # Later releases change nothing of it.
    ledger.reserve(kng.Guarantee.pure("0.25", "replace"))
    assert check_report(page, ledger) == found


def test_names_do_no_harm_and_the_page_is_good(made):
    page, _, results = made
    seen = require_a_good_page(page)
    assert "alert(" not in page
    assert {text for tag, text in seen.texts if tag == "th"} >= set(LEVELS)
    said = " ".join(text for _, text in seen.texts)
    for words in (
        "pure 0.5-differential privacy",
        "at most",
        "1.25",
        "every rounding is part of the proof",
        "kngjax verify",
        "people <&>",
    ):
        assert words in said
    assert all(f">{count:,}<" in page for count in results.params)
    assert document_in(page)["ledger"]["amounts"] == [["epsilon", "1/2", "1/4", "2"]]


def test_numbers_are_near_and_counts_are_the_same():
    assert _are_near([{"estimate": 0.1 + 0.2, "g": "a"}], [{"estimate": 0.3, "g": "a"}])
    assert not _are_near([{"estimate": 0.3}], [{"estimate": 0.30001}])
    assert not _are_near(10**12 + 1, 10**12)


def changed(page, old, new):
    assert page.count(old) >= 1, old
    return page.replace(old, new)


CHANGES = {
    "an estimate, in the JSON": lambda page, results: changed(
        page, f'"estimate": {results.params.iloc[0]}', '"estimate": 7'
    ),
    "an estimate, as it is shown": lambda page, results: changed(page, f">{results.params.iloc[0]}<", ">7<"),
    "a released value": lambda page, results: changed(
        page, f'"value": [{float(results.params.iloc[0])}', '"value": [7.0'
    ),
    "a certificate's assumption": lambda page, _: changed(
        page, '"the records were clipped', '"no records were clipped'
    ),
    "a certificate's cost": lambda page, _: changed(
        page,
        '"proved_of_this_release": {"delta": 0.0, "epsilon": 0.5',
        '"proved_of_this_release": {"delta": 0.0, "epsilon": 0.1',
    ),
    "the cost of all": lambda page, _: changed(page, '"privacy": {"epsilon": 0.5', '"privacy": {"epsilon": 0.1'),
    "the budget, in the JSON": lambda page, _: changed(
        page, '["epsilon", "1/2", "1/4", "2"]', '["epsilon", "1/2", "0", "2"]'
    ),
    "a word": lambda page, _: changed(page, "The releases protect each record", "The releases protect each person"),
    "style that hides": lambda page, _: changed(
        page, "</style>", "dl{display:none}h1::after{content:'approved'}</style>"
    ),
    "an attribute": lambda page, _: changed(page, 'aria-label="What any test', 'aria-label="All that any test'),
    "a second page in a comment": lambda page, _: changed(
        page, "</body>", f"<!--{page.replace('--', '').replace('json', 'text')}--></body>"
    ),
    "a script": lambda page, _: changed(page, "</body>", "<script>alert(1)</script></body>"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_report_does_not_hold(made, change):
    page, ledger, results = made
    assert check_report(CHANGES[change](page, results), ledger).differs
    assert check_report(CHANGES[change](page, results)).differs


def test_the_first_text_that_was_changed_is_named(made):
    page, ledger, results = made
    said = check_report(CHANGES["an estimate, as it is shown"](page, results), ledger).explain()
    assert f"what its JSON says: it should say '{results.params.iloc[0]}'" in said


def rewritten(page, change):
    """The report that somebody writes of other releases by the same program."""
    published = document_in(page)["published"]
    change(published["analyses"][0])
    return report_of(published, None)


RENAMED = {
    "levels": lambda document: document["published"]["analyses"][0]["result"]["axes"][0]["levels"].reverse(),
    "title": lambda document: document["published"]["analyses"][0]["result"].update(title="histogram of votes"),
    "labels": lambda document: document["published"]["analyses"][0].update(labels=["all"]),
    "what was asked": lambda document: document["published"]["analyses"][0].update(asked={"epsilon": 0.01}),
    "noise": lambda document: document["published"]["analyses"][0]["result"].update(deviation=0.5),
    "version": lambda document: document.update(kngjax="9"),
    "budget": lambda document: document.update(ledger=None),
}


@pytest.mark.parametrize("renamed", RENAMED)
def test_a_page_of_true_releases_under_other_names_is_found_by_its_seal(made, renamed):
    page, ledger, _ = made
    document = document_in(page)
    RENAMED[renamed](document)
    [analysis], [result] = document["published"]["analyses"], _read(document["published"])[0]
    analysis["numbers"] = numbers_of(result, 0.95)
    forged = report(document, [result], result.guarantee)
    found = check_report(forged, ledger)
    # A page without a budget says nothing that the seal would hold, and that is said.
    assert found.differs or "names, bounds" in found.open[0]
    assert "whether its releases were made is not checked" in check_report(forged).explain()


def test_a_seal_is_made_with_the_secret_identity_of_its_ledger(made):
    page, ledger, _ = made
    document, book = document_in(page), ledger.read()
    assert seal_of(document, book) == document["seal"]
    assert book.identity not in page
    assert seal_of(document, dataclasses.replace(book, identity="0" * 32)) != document["seal"]


def test_a_report_written_anew_of_other_values_needs_the_ledger(made):
    page, ledger, _ = made

    def certify_more(analysis):
        analysis["result"]["releases"][0]["certificate"]["assumptions"].append("that the moon is made of cheese")

    forged = rewritten(page, certify_more)
    assert not check_report(forged).differs
    assert "holds no such release" in check_report(forged, ledger).explain()


def test_a_ledger_that_was_set_back_does_not_hold(tmp_path):
    study, ledger = paid_study(tmp_path)
    earlier = shutil.copy(ledger.path, tmp_path / "earlier.ledger")
    study.histogram("region", epsilon=0.5).report(tmp_path / "report.html", ledger=ledger)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "was set back" in check_report(page, kng.Ledger(earlier)).explain()


def test_another_ledger_does_not_hold(made, tmp_path):
    page, _, _ = made
    other = paid_study(tmp_path)[1]
    assert "does not contain the head" in check_report(page, other).explain()
    bare = rewritten(page, lambda analysis: None)
    assert "holds no such release" in check_report(bare, other).explain()


def test_a_report_is_not_made_of_changed_releases_or_for_another_ledger(made, tmp_path):
    page, _, results = made
    with pytest.raises(ValueError, match="are not those of its releases"):
        rewritten(page, lambda analysis: analysis["numbers"][0].update(estimate=7))
    with pytest.raises(ValueError, match="did not pay for it"):
        results.report(tmp_path / "report.html", ledger=paid_study(tmp_path)[1])
    assert not (tmp_path / "report.html").exists()
    with pytest.raises(ValueError, match=r"releases\.json"):
        report_of({"analyses": [{"result": {}}]}, None)


def test_a_report_holds_nothing_for_the_owner_alone(tmp_path):
    study, ledger = paid_study(tmp_path, adjacency="add_remove")
    # A debit that led to no release, as after a draw that failed.
    ledger.reserve(kng.Guarantee.pure(1, "add_remove"), "<a secret failure>", drawn=True)
    results = study.histogram("region", epsilon=0.5)
    results.report(tmp_path / "report.html", ledger=ledger)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    # As a number by itself: digests and places of shapes have any digits.
    shown = re.sub(r'="[^"]*"', "", page)
    assert re.search(r"(?<![\w.])256(?![\w.])", shown)
    assert not re.search(r"(?<![\w.])300(?![\w.])", shown)
    assert '"num_records"' not in page.replace('"num_records": null', "")
    assert "secret" not in page
    [[name, here, others, whole]] = document_in(page)["ledger"]["amounts"]
    assert (name, here, others, whole) == ("epsilon", "1/2", "0", "2")
    assert "The number of records is private" in page
    assert not check_report(page, ledger).differs
    assert ledger.read().identity not in page
    # A second page does not tell that a debit failed in between, nor which releases a job still owes.
    ledger.reserve(kng.Guarantee.pure("0.1", "add_remove"), drawn=True)
    results.report(tmp_path / "again.html", ledger=ledger)
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page
    published = document_in(page)["published"] | {"missing": ["2. a mean"]}
    assert report_of(published, ledger.read()) == page
