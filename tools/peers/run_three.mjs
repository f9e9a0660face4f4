// three.js's CCDIKSolver on the problem file: node run_three.mjs PROBLEMS RESULTS FOLDER, where FOLDER holds
// node_modules/three.
//
// Timed: CCDIKSolver.update with one iteration, again and again until the tip is near enough: it has no tolerance of
// its own. A hinge is a bone with `limitation` and rotationMin and rotationMax, in an Euler order that keeps its
// angle from flipping at 90 degrees. It has no target rotations.

import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [problemsFile, resultsFile, folder] = process.argv.slice(2);
const three = join(resolve(folder), 'node_modules', 'three');
const THREE = await import(pathToFileURL(join(three, 'build', 'three.module.js')));
const addon = join(three, 'examples', 'jsm', 'animation', 'CCDIKSolver.js');
const { CCDIKSolver } = await import(pathToFileURL(addon));

const WARM_UP = 200; // calls, after which V8 has compiled what it compiles
const ORDERS = ['XYZ', 'YXZ', 'ZXY']; // by axis: the first letter's angle has the whole circle
const { settings, problems } = JSON.parse(readFileSync(problemsFile, 'utf8'));

class Peer {
  constructor(given) {
    this.given = given;
    this.bones = given.offsets.map((at, i) => {
      const bone = new THREE.Bone();
      if (i > 0) bone.position.fromArray(at);
      return bone;
    });
    const effector = this.bones.length - 1;
    this.bones.forEach((bone, i) => i < effector && bone.add(this.bones[i + 1]));
    this.goal = new THREE.Bone();
    const links = [];
    for (let i = effector - 1; i >= 0; i--) links.push(this.link(i));
    const mesh = new THREE.SkinnedMesh();
    mesh.add(this.bones[0], this.goal);
    mesh.bind(new THREE.Skeleton([...this.bones, this.goal]));
    this.mesh = mesh;
    this.solver = new CCDIKSolver(mesh, [{ target: effector + 1, effector, links, iteration: 1 }]);
    this.tip = new THREE.Vector3();
    this.want = new THREE.Vector3();
  }

  link(i) {
    const { hinges, limits } = this.given;
    if (hinges.length === 0) return { index: i };
    const axis = new THREE.Vector3().fromArray(hinges[i]);
    this.bones[i].rotation.order = ORDERS[hinges[i].findIndex((v) => v !== 0)];
    const [low, high] = limits[i];
    return {
      index: i,
      limitation: axis,
      rotationMin: axis.clone().multiplyScalar(low),
      rotationMax: axis.clone().multiplyScalar(high),
    };
  }

  reset() {
    const { start, hinges } = this.given;
    const turn = new THREE.Quaternion();
    start.forEach((angles, i) => {
      const axes = hinges.length ? [hinges[i]] : [[0, 0, 1], [1, 0, 0]];
      this.bones[i].quaternion.identity();
      axes.forEach((axis, j) => {
        turn.setFromAxisAngle(new THREE.Vector3().fromArray(axis), angles[j]);
        this.bones[i].quaternion.multiply(turn);
      });
    });
    this.mesh.updateMatrixWorld(true);
  }

  target(position) {
    this.goal.position.fromArray(position);
    this.goal.updateMatrixWorld(true);
    this.want.fromArray(position);
  }

  solve() {
    const last = this.bones[this.bones.length - 1];
    for (let round = 0; round < settings.max_rounds; round++) {
      if (this.tip.setFromMatrixPosition(last.matrixWorld).distanceTo(this.want) <= settings.tolerance_m) return;
      this.solver.update();
    }
  }

  residual() {
    this.mesh.updateMatrixWorld(true);
    return this.tip.setFromMatrixPosition(this.bones[this.bones.length - 1].matrixWorld).distanceTo(this.want);
  }
}

function measure(peer, given, mode) {
  const targets = given[mode].positions;
  const row = { solver: 'three CCDIKSolver', problem: given.name, mode, cannot: '' };
  const [times, residuals] = [[], []];
  for (let i = 0; i < WARM_UP; i++) {
    if (mode === 'cold' || i % targets.length === 0) peer.reset();
    peer.target(targets[i % targets.length]);
    peer.solve();
  }
  const ends = performance.now() + settings.patience_s * 1e3;
  for (let repeat = 0; repeat < settings.repeats; repeat++) {
    peer.reset();
    const count = repeat ? times.length : targets.length;
    for (let i = 0; i < count && !(times.length && performance.now() > ends); i++) {
      if (mode === 'cold') peer.reset();
      peer.target(targets[i]);
      const begin = process.hrtime.bigint();
      peer.solve();
      const spent = Number(process.hrtime.bigint() - begin) / 1e3;
      if (repeat) {
        times[i] = Math.min(times[i], spent);
      } else {
        times.push(spent);
        residuals.push(peer.residual());
      }
    }
  }
  return { ...row, times_us: times, residuals_m: residuals, residuals_rad: residuals.map(() => 0) };
}

const rows = problems.flatMap((given) => {
  if (given.oriented) {
    const none = { times_us: [], residuals_m: [], residuals_rad: [], cannot: 'no target rotations' };
    return ['cold', 'warm'].map((mode) => ({ solver: 'three CCDIKSolver', problem: given.name, mode, ...none }));
  }
  const peer = new Peer(given);
  return ['cold', 'warm'].map((mode) => measure(peer, given, mode));
});
writeFileSync(resultsFile, JSON.stringify(rows));
